"""Python runs this file when a process starts whose PYTHONPATH names its folder. With SLUICE_ATTACH=1 it attaches Sluice to torch's loaders.

A `sitecustomize` of the user's own, further back on the path, then runs as if this file were not there.
"""

import os
import sys
from importlib.machinery import PathFinder


def _is_on(name: str, default: str) -> bool:
    return (os.environ.get(name, "").strip().lower() or default) in ("on", "1", "true", "yes")


def _attach() -> None:
    try:
        from sluice.attach import attach

        attach()
    except Exception as error:  # A Python that Sluice does not support, say: the program runs as without it.
        sys.stderr.write("sluice: not attached: %s: %s\n" % (type(error).__name__, error))


def _run_the_next() -> None:
    """Only what comes after this file: a copy of it, further ahead, has run."""
    here, folders = os.path.dirname(os.path.abspath(__file__)), [os.path.abspath(entry) for entry in sys.path]
    behind = folders[folders.index(here) + 1 :] if here in folders else []
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in behind if folder != here])
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    vars(module)["__cached__"] = spec.cached
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if _is_on("SLUICE_ATTACH", "off") and _is_on("SLUICE", "on"):
    _attach()
_run_the_next()
