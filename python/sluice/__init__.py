"""Sluice: data loading by elastic workers behind PyTorch's own interface.

`from sluice.torch import DataLoader` is all a training script needs. Importing this package alone imports neither torch
nor anything else, so that the executor's child can start as cheaply as possible.
"""

__version__ = "0.1.0"
