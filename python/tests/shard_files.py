"""Tar shards for tests: made with tarfile, as WebDataset's writers do."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path


def write_shard(path: Path, members, format=tarfile.USTAR_FORMAT) -> Path:
    """`members`: (name, bytes) each, or a TarInfo of something else than a file."""
    with tarfile.open(path, "w", format=format) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, data = member
            header = tarfile.TarInfo(name)
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
    return path


def shards_of_images(root: Path, folder: Path, each: int = 9) -> Path:
    """The files of an image folder in shards of so many samples, in the order of ImageFolder's samples."""
    from torchvision.datasets import ImageFolder

    folder.mkdir(parents=True, exist_ok=True)
    samples = ImageFolder(root).samples
    for number, first in enumerate(range(0, len(samples), each)):
        members = []
        for path, label in samples[first : first + each]:
            key = f"{label}/{Path(path).stem}"
            members += [(f"{key}.{Path(path).suffix[1:]}", Path(path).read_bytes()), (f"{key}.cls", str(label).encode())]
        write_shard(folder / f"train-{number:03d}.tar", members)
    return folder
