"""The work that each loader does: the same samples in the same order, in batches of 256."""

import dataclasses
import functools
import pathlib
import shutil

BATCH_SIZE = 256
WORKERS = 2  # processes or threads, as many as a peer's own means allow
TOKENS = 128  # of a paragraph; shorter ones are filled up with zeros
VOCABULARY = 30_000
IMAGE_SIDE = 224


@dataclasses.dataclass(frozen=True)
class Workload:
    """A loop over batches. CPU time is counted over `measured_batches` and those until the next one that the loop has to wait for."""

    name: str
    title: str
    warm_batches: int
    measured_batches: int
    spare_batches: int  # more than any loader makes ahead
    waiting_seconds: float = 0.02  # A batch that took as long did not lie ready: a fast machine makes photographs in four times that.

    @property
    def samples(self):
        return BATCH_SIZE * (self.warm_batches + self.measured_batches + self.spare_batches)


WORKLOADS = {
    workload.name: workload
    for workload in [
        Workload("photographs", "decode, RandomResizedCrop(224), flip, float32, normalise", 2, 6, 24),
        Workload("bytes", "decode, RandomResizedCrop(224), flip, uint8 (the trainer normalises)", 2, 6, 24),
        Workload("own", "the same as float32 in a Dataset class of one's own, `__getitem__` in Python", 2, 6, 24),
        Workload("contrastive", "SimCLR: crop, flip, colour jitter, grey, blur, float32", 2, 4, 24),
        Workload("text", "cheap text: a paragraph's words as numbers", 200, 400, 100, 0.001),
    ]
}


@dataclasses.dataclass(frozen=True)
class Work:
    """What a peer is given: a workload over photographs in one folder a class, or over a file of paragraphs, one a line."""

    workload: Workload
    folder: pathlib.Path
    paragraphs: pathlib.Path
    scratch: pathlib.Path  # where the peers keep other forms of the photographs
    batch_size: int = BATCH_SIZE
    workers: int = WORKERS

    def made_once(self, name, make):
        """A file or folder in `scratch`. `make` gets the path that it is to be made at: another one, so that an interrupted attempt is no result."""
        path, unfinished = self.scratch / name, self.scratch / f"{name}.unfinished"
        if not path.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished)
            unfinished.rename(path)
        return path

    @functools.cached_property
    def photographs(self):
        """Path and label of each sample: the folder as often as it takes."""
        labels = {path.name: number for number, path in enumerate(sorted(self.folder.iterdir()))}
        files = sorted(self.folder.glob("*/*.jpg"))
        return [(str(file), labels[file.parent.name]) for file in (files[at % len(files)] for at in range(self.workload.samples))]

    @functools.cached_property
    def lines(self):
        lines = self.paragraphs.read_text(encoding="utf-8").splitlines()
        return [lines[at % len(lines)] for at in range(self.workload.samples)]

    @functools.cached_property
    def vocabulary(self):
        """The words of the paragraphs with their numbers, from 1. Zero is every other word, and no word."""
        words = sorted({word for line in self.paragraphs.read_text(encoding="utf-8").splitlines() for word in line.lower().split()})
        return {word: number for number, word in enumerate(words[:VOCABULARY], 1)}
