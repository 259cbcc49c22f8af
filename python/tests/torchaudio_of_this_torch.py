"""torchaudio beside a torch that was built for other graphics cards: the newest torchaudio refuses those, though it needs none."""

from unittest import mock

import torch

with mock.patch.object(torch.version, "cuda", None):
    from torchaudio import functional, transforms

__all__ = ["functional", "transforms"]
