"""What a training step does with a batch: a real model where CUDA is present, a sleep of known length otherwise.

begin(batch) starts the step, wait() returns at its end; what the CPU does in between overlaps with it, as on a real device.
"""

import time

import torch
from torch import nn


class EmulatedAccelerator:
    """Computes for a fixed time per sample and uses no CPU, as MLPerf Storage emulates its accelerators."""

    def __init__(self, figures):
        self._figures = figures
        self.name = "emulated: " + figures.source

        self._end = 0.0

    def begin(self, batch):
        self._end = time.monotonic() + self._figures.seconds_for(len(batch[1]))

    def wait(self):
        time.sleep(max(0.0, self._end - time.monotonic()))


class CudaAccelerator:
    """Trains a real model on the first CUDA device."""

    def __init__(self, job, classes):
        self._device = torch.device("cuda")
        self._model = make_model(job, classes).to(self._device)
        self._optimiser = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)
        self.name = torch.cuda.get_device_name()

    def begin(self, batch):
        inputs, labels = batch[0].to(self._device, non_blocking=True), batch[1].to(self._device, non_blocking=True)
        self._optimiser.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self._model(inputs), labels).backward()
        self._optimiser.step()

    def wait(self):
        torch.cuda.synchronize()


class BagOfTokens(nn.Module):
    def __init__(self, vocabulary, classes):
        super().__init__()
        self._embedding = nn.EmbeddingBag(vocabulary, 256)
        self._output = nn.Linear(256, classes)

    def forward(self, ids):
        return self._output(self._embedding(ids))


def make_model(job, classes):
    if job == "vision":
        from torchvision.models import resnet50

        return resnet50(num_classes=classes)
    if job == "speech":
        return nn.Sequential(
            nn.Conv1d(80, 256, 5, 2), nn.ReLU(), nn.Conv1d(256, 256, 5, 2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(256, classes),
        )  # fmt: skip
    return BagOfTokens(30522, classes)


def make_accelerator(job, figures, classes):
    return CudaAccelerator(job, classes) if torch.cuda.is_available() else EmulatedAccelerator(figures)
