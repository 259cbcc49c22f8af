"""The interpreters of the tests' shared feeder begin with this: torchvision imports torch's compiler, 1.7 CPU-seconds that each pipeline of pictures
would need anew. And thousands of executors are forks of them."""

import contextlib
import runpy
from pathlib import Path

with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401
    runpy.run_path(str(Path(__file__).parents[1] / "huge_pages.py"))["gather"]()
