"""The trainings of MLPerf Storage that DLIO emulates with PyTorch's loader, small enough for two cores and a minute.

MLPerf Storage gives an A100 0.435 s for 400 photographs of ResNet-50, and 0.636 s for 7 volumes of 3D U-Net. DLIO's own files hold these figures. Here
a sample takes the same time for each of its bytes, so the accelerator asks for bytes at the A100's rate.
"""

from dataclasses import dataclass

SECONDS_OF_400_PHOTOGRAPHS = 0.435
SECONDS_OF_7_VOLUMES = 0.636
VOLUME_BYTES, VOLUME_DEVIATION_BYTES, VOLUME_RESIZED_BYTES = 146600628, 68341808, 2097152
VOLUME_SCALE = 16  # A volume is this much smaller.
WORKERS = 2


@dataclass(frozen=True)
class Workload:
    title: str
    configuration: str  # of DLIO
    files: int  # of a sample each
    batch_size: int
    compute_seconds: float  # of a batch
    epochs: int
    settings: tuple[str, ...]  # what else differs from that configuration
    recording_reader: str

    @property
    def steps(self):
        """Of an epoch."""
        return self.files // self.batch_size

    @property
    def samples(self):
        """Of a run."""
        return self.epochs * self.steps * self.batch_size


WORKLOADS = {
    "resnet50": Workload("ResNet-50: JPEG files of 338x338, in batches of 64", "resnet50_a100", 1280, 64, SECONDS_OF_400_PHOTOGRAPHS * 64 / 400, 5,
                         ("framework=pytorch", "reader.data_loader=pytorch", "dataset.format=jpeg", "dataset.num_samples_per_file=1",
                          "reader.sample_shuffle=seed"), "RecordingImageReader"),
    "unet3d": Workload("3D U-Net: npz files of 9 MB, in batches of 7", "unet3d_a100", 105, 7, SECONDS_OF_7_VOLUMES / VOLUME_SCALE, 5,
                       (f"dataset.record_length={VOLUME_BYTES // VOLUME_SCALE}", f"dataset.record_length_stdev={VOLUME_DEVIATION_BYTES // VOLUME_SCALE}",
                        f"dataset.record_length_resize={VOLUME_RESIZED_BYTES // VOLUME_SCALE}", "workflow.checkpoint=False", "checkpoint.model_size=0"), "RecordingNpzReader"),
}  # fmt: skip

GENERATES = ("workflow.generate_data=True", "workflow.train=False")
WITH_SLUICE = ("reader.data_loader_classname=sluice_loader.SluiceLoader", "reader.data_loader_sampler=index")


def arguments(workload, data, output, changes=()):
    """Of DLIO's command. `data`, `output`: folders. `changes`: as "section.name=value"."""
    settings = (f"dataset.data_folder={data}", f"dataset.num_files_train={workload.files}", f"reader.batch_size={workload.batch_size}",
                f"reader.read_threads={WORKERS}", f"train.computation_time={workload.compute_seconds:.5f}", f"train.epochs={workload.epochs}",
                f"output.folder={output}", *workload.settings, *changes)  # fmt: skip
    return [f"workload={workload.configuration}", *(f"++workload.{setting}" for setting in settings), f"hydra.run.dir={output}"]


def recording(workload):
    """The change after which each worker writes down what it reads."""
    return (f"reader.reader_classname=recording_reader.{workload.recording_reader}",)
