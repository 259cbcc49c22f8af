"""torchaudio beside a torch that was built for other graphics cards: the newest torchaudio refuses those, though it needs none.

So it is not among the environment's packages, but in the folder `apart` (toolchain/requirements-apart.txt).
"""

import os
import sys
from unittest import mock

import torch

sys.path.append(os.path.join(sys.prefix, "apart"))
with mock.patch.object(torch.version, "cuda", None):
    import torchaudio
    from torchaudio import functional, transforms

__all__ = ["functional", "torchaudio", "transforms"]
