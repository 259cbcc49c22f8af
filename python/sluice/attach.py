"""Programs that run unedited: loaders of torch's class are served by Sluice from the moment that an iterator is made.

`attach()` replaces one method, `torch.utils.data.DataLoader._get_iterator`, now or when torch is imported. The class, its subclasses and their
objects stay what they are. `sluice run` and SLUICE_ATTACH=1 call it at the start of a process (start/sitecustomize.py), before anything is imported: so
this module imports nothing that costs time.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # Known to type checkers; the module `typing` alone would take longer than all of this.
if TYPE_CHECKING:
    from typing import Any

_LOADERS = "torch.utils.data.dataloader"


def attach() -> None:
    """Serves the loaders of this process and of those that it forks. May be called again."""
    module = sys.modules.get(_LOADERS)
    if module is not None and hasattr(module, "DataLoader"):
        _replace(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds torch's module of loaders where all others would, once, and replaces its method after it has run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _LOADERS:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _replace_after(spec.loader)
                return spec
        return None


def _replace_after(loader: Any) -> None:
    """The module's own loader stays, as tools read sources by it; one object of it runs one module."""
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        execute(module)
        _replace(module)

    loader.exec_module = exec_module


def _replace(module: Any) -> None:
    import functools

    made_by_torch = getattr(module.DataLoader, "_get_iterator", None)
    if made_by_torch is None:
        sys.stderr.write("sluice: not attached: this torch makes its iterators in another way\n")
    if made_by_torch is None or hasattr(made_by_torch, "attached_by_sluice"):
        return

    @functools.wraps(made_by_torch)
    def _get_iterator(self: Any) -> Any:
        from sluice.attached import iterator

        return iterator(self, made_by_torch)

    vars(_get_iterator)["attached_by_sluice"] = True
    module.DataLoader._get_iterator = _get_iterator
