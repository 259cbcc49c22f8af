"""NVIDIA DALI without a GPU: its decoder of random crops, and its iterator for PyTorch."""

from peers import Peer, on


def graph(work):
    """Images and labels of DALI's operators. The blur has hardly any width where SimCLR has none."""
    from nvidia.dali import fn, types
    from workloads import IMAGE_SIDE

    files, labels = zip(*work.photographs, strict=True)
    data, numbers = fn.readers.file(files=list(files), labels=list(labels), name="photographs")
    images = fn.decoders.image_random_crop(
        data, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10)  # fmt: skip
    images = fn.resize(images, resize_x=IMAGE_SIDE, resize_y=IMAGE_SIDE, interp_type=types.INTERP_LINEAR, antialias=True)
    mirror = fn.random.coin_flip(probability=0.5)
    if work.workload.name == "bytes":
        return fn.flip(images, horizontal=mirror), numbers
    mean, deviation = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
    if work.workload.name == "contrastive":
        images, mean, deviation = with_colours(images), [0.0] * 3, [255.0] * 3
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=mean, std=deviation, mirror=mirror), numbers


def with_colours(images):
    from nvidia.dali import fn

    jitters = fn.random.coin_flip(probability=0.8)
    grey = fn.random.coin_flip(probability=0.2)

    def factor(width):
        return 1.0 + jitters * fn.random.uniform(range=[-width, width])

    saturation = factor(0.8) * (1 - grey)
    images = fn.color_twist(
        images, brightness=factor(0.8), contrast=factor(0.8), saturation=saturation, hue=jitters * fn.random.uniform(range=[-72.0, 72.0]))  # fmt: skip
    return fn.gaussian_blur(images, window_size=23, sigma=0.01 + fn.random.coin_flip(probability=0.5) * fn.random.uniform(range=[0.1, 2.0]))


def batches(work):
    from nvidia.dali import pipeline_def
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    @pipeline_def(batch_size=work.batch_size, num_threads=work.workers, device_id=None, prefetch_queue_depth=2)
    def pipeline():
        return graph(work)

    for batch in DALIGenericIterator(pipeline(), ["image", "label"], reader_name="photographs", last_batch_policy=LastBatchPolicy.DROP):
        yield batch[0]["image"], batch[0]["label"]


PEERS = [Peer("DALI, CPU", on("photographs bytes contrastive", batches), "antialias; close to PIL's", ("nvidia-dali-cuda120==2.4.0",), "dali")]
