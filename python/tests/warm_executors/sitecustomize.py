"""The interpreters of the tests' shared feeder begin with this: torchvision imports torch's compiler, 1.7 CPU-seconds that each pipeline of pictures
would need anew."""

import contextlib

with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401
