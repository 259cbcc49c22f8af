"""What the fake feeder makes: batches of Python pipelines by the client's own code, and those of native ones by torchvision itself."""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
from typing import Any

import numpy
import torch

from sluice.executor.computation import BatchRequest, Computation, PythonPipeline
from sluice.shipping import structure
from sluice.shipping.failures import describe
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.shipment import describe_pipeline
from sluice.shipping.structure import layout, pack
from sluice.stores.object_reader import ObjectState, Range, reader
from sluice.stores.object_urls import is_url

__all__ = ["Computation", "compute", "describe", "native_pipeline", "read_specification", "write"]


def native_pipeline(memory: SealedMemory) -> SealedMemory:
    """The description of a Python pipeline that makes the batches of a native one."""
    return describe_pipeline(PythonPipeline(_NativeFolder(bytes(memory.view())), None, True))[0].shipment.memory


def compute(computation: Computation, wanted: dict, made: bytes) -> tuple[list[torch.Tensor], bytes]:
    """The batch of a request with these fields: its tensors, and a pickle of the rest. `made`: the history of its virtual worker."""
    torch.set_num_threads(1)
    return pack(computation.compute(computation.arrived(BatchRequest(**wanted)), made))


def write(tensors: list[torch.Tensor], arena: mmap.mmap, offset: int, most_bytes: int) -> list[dict]:
    """Where in the arena each tensor is now."""
    descriptors, nbytes = layout(tensors)
    assert nbytes <= most_bytes, "the test's batches do not fit into the fake feeder's slots"
    return structure.write(tensors, descriptors, arena, offset)


def read_specification(blob: bytes) -> tuple[dict, list[tuple[str, int]]]:
    """Of a native pipeline: its JSON, and its files as (path, label)."""
    header, _, table = blob.partition(b"\n")
    spec = json.loads(header)
    if spec["source"]["kind"] == "pixels":
        return spec, read_pixels(spec["source"], table)
    if spec["source"]["kind"] in ("file_ranges", "object_ranges"):
        return spec, read_ranges(spec["source"], table)
    count = spec["source"]["files"]
    run_count, directories_bytes, names_bytes = struct.unpack_from("<QQQ", table)
    labels = struct.unpack_from(f"<{count}q", table, 24)
    runs = list(struct.iter_unpack("<II", table[24 + 8 * count : 24 + 8 * count + 8 * run_count]))
    directories = table[-names_bytes - directories_bytes : -names_bytes].decode().split("\0")
    names = table[-names_bytes:].decode().split("\0")[:-1]
    directory_of = {first: directories[number] for number, first in runs}
    files, directory = [], ""
    for index in range(count):
        directory = directory_of.get(index, directory)
        files.append((os.path.join(directory, names[index]), labels[index]))
    return spec, files


def read_ranges(source: dict, table: bytes) -> list[tuple[tuple, int]]:
    """Of a native pipeline over ranges: ((path, offset, length, bytes of the file, its modification or ETag), label) of each sample."""
    samples, files = source["samples"], source["files"]
    numbers = struct.unpack_from(f"<{samples}q{samples}Q{files}Q{files}q{samples}I{samples}I", table)
    lengths = iter((samples, samples, files, files, samples, samples))
    columns, rest = [], numbers
    for length in lengths:
        columns.append(rest[:length])
        rest = rest[length:]
    labels, offsets, file_bytes, modified, sample_bytes, file_numbers = columns
    names = table[24 * samples + 16 * files :].decode().split("\0")[:-1]
    if source["kind"] == "object_ranges":
        names, etags = names[:files], names[files:]
        modified = [etag or time for etag, time in zip(etags, modified, strict=True)]
    return [((names[file], offsets[sample], sample_bytes[sample], file_bytes[file], modified[file]), labels[sample])
            for sample, file in enumerate(file_numbers)]


def read_pixels(source: dict, table: bytes) -> list[tuple[numpy.ndarray, int]]:
    """Of a native pipeline over images in memory: (pixels [height][width][3], label) of each sample."""
    samples = source["samples"]
    sides = {"h": source["height"], "w": source["width"], "c": source["channels"]}
    labels = struct.unpack_from(f"<{samples}q", table)
    images = numpy.frombuffer(table, numpy.uint8, offset=8 * samples).reshape(samples, *(sides[axis] for axis in source["axes"]))
    images = images.transpose(0, *(1 + source["axes"].index(axis) for axis in "hwc"))
    return [(numpy.repeat(image, 3 // sides["c"], 2), label) for image, label in zip(images, labels, strict=True)]


class _NativeFolder(torch.utils.data.Dataset):
    """A native spec run by torchvision."""

    def __init__(self, specification: bytes) -> None:
        from PIL import Image
        from torchvision import transforms
        from torchvision.datasets.folder import pil_loader
        from torchvision.transforms import InterpolationMode, v2

        spec, files = read_specification(specification)

        self._load, self._open, self._of_pixels = pil_loader, Image.open, Image.fromarray
        self._root, self._files = spec["source"].get("root"), files
        def resizing(op: dict, make: Any) -> list:
            kind = op["interpolation"].removeprefix("tensor_")
            if kind == op["interpolation"]:
                return [make(transforms, InterpolationMode(kind))]
            return [v2.PILToTensor(), make(v2, InterpolationMode(kind)), transforms.ToPILImage()]

        def colouring(op: dict, make: Any) -> list:
            return [v2.PILToTensor(), make(v2), transforms.ToPILImage()] if op.get("arithmetic") == "tensor" else [make(transforms)]

        makers = {
            "decode_rgb": lambda op: [],
            "random_resized_crop": lambda op: resizing(op, lambda of, kind: of.RandomResizedCrop(op["size"], op["scale"], op["ratio"], interpolation=kind)),
            "resize": lambda op: resizing(op, lambda of, kind: of.Resize(op["size"], kind, op.get("max_size"))),
            "random_crop": lambda op: [(v2 if op.get("generation") == 2 else transforms).RandomCrop(op["size"], None, op.get("pad_if_needed", False))],
            "pad": lambda op: [transforms.Pad(op["padding"], tuple(op.get("fill", [0])), op.get("mode", "constant"))],
            "random_vertical_flip": lambda op: [transforms.RandomVerticalFlip(op["p"])],
            "random_grayscale": lambda op: colouring(op, lambda of: of.RandomGrayscale(op["p"])),
            "color_jitter": lambda op: colouring(op, lambda of: of.ColorJitter(**{name: tuple(value) for name, value in op.items() if type(value) is list})),
            "to_float": lambda op: [v2.ToImage(), v2.ToDtype(torch.float32, scale=op.get("scale", True))],
            "random_erasing": lambda op: [transforms.RandomErasing(op["p"], op["scale"], op["ratio"], op["value"])],
            "center_crop": lambda op: [transforms.CenterCrop(op["size"])],
            "random_horizontal_flip": lambda op: [transforms.RandomHorizontalFlip(op["p"])],
            "to_tensor": lambda op: [transforms.ToTensor()],
            "normalize": lambda op: [transforms.Normalize(op["mean"], op["std"])],
        }
        augmentations = {
            "posterize": lambda image, bits: transforms.functional.posterize(image, int(bits)),
            "sharpness": lambda image, less_one: transforms.functional.adjust_sharpness(image, 1 + less_one),
            "solarize": transforms.functional.solarize,
        }
        makers |= {
            "grayscale": lambda op: colouring(op, lambda of: of.Grayscale(3)),
            "random_rotation": lambda op: [transforms.RandomRotation(op["degrees"], InterpolationMode(op["interpolation"]), fill=op.get("fill", 0))],
            "augment": lambda op: [lambda image: augmentations[op["name"]](image, *op["magnitudes"])],
            "random_apply": lambda op: [v2.RandomApply([step for inner in op["ops"] for step in makers[inner["op"]](inner)], op["p"])],
        }

        def steps_of(ops: list[dict]) -> list:
            return [step for op in ops for step in makers[op["op"]](op)]

        def ended(ops: list[dict], shared: list[dict]) -> list:
            end = [] if any(op["op"] in ("to_tensor", "to_float") for op in ops) else [transforms.PILToTensor()]
            channels = [op.get("channels", 3) for op in [*shared, *ops] if op["op"] == "grayscale"] or [spec["source"].get("channels", 3)]
            return [*steps_of(ops), *end, *([lambda tensor: tensor[:1]] if channels[-1] == 1 else [])]

        self._only_rgb, self._only_8_bits = (any(op.get(name) for op in spec["ops"]) for name in ("only_rgb", "only_8_bits"))
        self._shared = transforms.Compose(steps_of(spec["ops"]) if "views" in spec else ended(spec["ops"], []))
        self._views = [transforms.Compose(ended(ops, spec["ops"])) for ops in spec.get("views", [])]

    def _transform(self, image: Any) -> tuple[torch.Tensor, ...]:
        shared = self._shared(image)
        return tuple(view(shared) for view in self._views) or (shared,)

    def __getitem__(self, index: int) -> tuple:
        place, label = self._files[index]
        if isinstance(place, numpy.ndarray):
            return *self._transform(self._of_pixels(place)), label
        if self._root is not None:
            path = os.path.join(self._root, place)
            if self._only_rgb and self._open(path).mode != "RGB":
                raise ValueError(f"{path}: is not RGB, and nothing converts it")
            if self._only_8_bits and path.endswith(".png") and open(path, "rb").read()[24] == 16:
                raise ValueError(f"{path}: has 16 bits")
            return *self._transform(self._load(path)), label
        path, offset, length, file_bytes, modified = place
        if is_url(path):
            data = reader().read(Range(path, ObjectState(file_bytes, modified), offset, length))
            return *self._transform(self._open(io.BytesIO(data)).convert("RGB")), label
        if (os.stat(path).st_size, os.stat(path).st_mtime_ns) != (file_bytes, modified):
            raise OSError(f"{path} has changed")
        with open(path, "rb") as file:
            file.seek(offset)
            return *self._transform(self._open(io.BytesIO(file.read(length))).convert("RGB")), label
