"""DLIO's readers, which write down the samples that each worker reads: a file for each worker, in the folder of DLIO's output."""

import pathlib

from dlio_benchmark.reader.image_reader import ImageReader
from dlio_benchmark.reader.npz_reader import NPZReader


class _Recording:
    def read_index(self, image_idx, step):
        with pathlib.Path(self._args.output_folder, f"samples-{self.thread_index}").open("a") as file:
            file.write(f"{image_idx}\n")
        return super().read_index(image_idx, step)


class RecordingImageReader(_Recording, ImageReader):
    pass


class RecordingNpzReader(_Recording, NPZReader):
    pass
