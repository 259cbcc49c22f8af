"""FFCV: its own file of JPEGs, which its compiled pipeline decodes, crops and resizes."""

from peers import Peer, on


def file(work):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder

    def make(path):
        writer = DatasetWriter(str(path), {"image": RGBImageField(write_mode="jpg"), "label": IntField()}, num_workers=work.workers)
        writer.from_indexed_dataset(ImageFolder(work.folder))

    return work.made_once("photographs.beton", make)


def batches(work):
    import numpy
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    from workloads import IMAGE_SIDE

    steps = [RandomResizedCropRGBImageDecoder((IMAGE_SIDE, IMAGE_SIDE)), RandomHorizontalFlip()]
    if work.workload.name == "photographs":
        mean, deviation = numpy.array([0.485, 0.456, 0.406]) * 255, numpy.array([0.229, 0.224, 0.225]) * 255
        steps.append(NormalizeImage(mean, deviation, numpy.float32))
    samples = len(set(work.photographs))
    indices = [at % samples for at in range(work.workload.samples)]
    loader = Loader(str(file(work)), indices=indices, batch_size=work.batch_size, num_workers=work.workers, order=OrderOption.SEQUENTIAL, os_cache=True, drop_last=True,
                    pipelines={"image": [*steps, ToTensor(), ToTorchImage()], "label": [IntDecoder(), ToTensor()]})  # fmt: skip
    return iter(loader)


PEERS = [Peer("FFCV", on("photographs bytes", batches), "JPEG files written anew; area filter", ("ffcv==1.0.2",), "ffcv", file)]
