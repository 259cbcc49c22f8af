"""Whether a worker_init_fn does nothing but give each worker a seed of its own.

Every sample is seeded anyway, so such a function need not run. Any other function may prepare the worker's own copy of the
dataset, or ask for the numbers of one seed in all workers: both need a process for each worker.
"""

from __future__ import annotations

import builtins
import dis
import functools
import random
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
import torch.utils.data

# Functions of libraries that only seed, by module and name.
_KNOWN = {
    ("lightning.fabric.utilities.seed", "pl_worker_init_function"),
    ("lightning_fabric.utilities.seed", "pl_worker_init_function"),
    ("pytorch_lightning.utilities.seed", "pl_worker_init_function"),
    ("transformers.trainer_utils", "seed_worker"),
}
_MODULES = ("random", "numpy", "numpy.random", "torch", "torch.random", "torch.cuda", "torch.utils", "torch.utils.data")
_ATTRIBUTES = {"random", "seed", "manual_seed", "manual_seed_all", "initial_seed", "get_state", "get_worker_info", "utils", "data",
               "cuda", "id", "num_workers"}
_SEEDS_OF_WORKERS = {"initial_seed", "get_state", "get_worker_info"}
_BUILTINS = (int, hash, abs, min, max, sum, len)
_FORBIDDEN = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_ATTR", "DELETE_SUBSCR",
              "DELETE_GLOBAL", "MAKE_FUNCTION", "LOAD_BUILD_CLASS", "IMPORT_STAR", "YIELD_VALUE", "GET_AWAITABLE")
_DEEPEST_CALL = 4


def only_seeds(function: Any) -> bool:
    """True only if that is certain from the function's code and the names it uses."""
    return _changes_only_seeds(function) and _differs_by_worker(function)


def _changes_only_seeds(function: Any, depth: int = 0) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    if type(function) is not FunctionType or depth > _DEEPEST_CALL:
        return False
    if (function.__module__, function.__qualname__) in _KNOWN:
        return True
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    outer = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    return all(_harmless(step, function, outer, depth) for step in dis.get_instructions(code))


def _differs_by_worker(function: Any, called: bool = False) -> bool:
    """Whether it uses its argument, the worker's number, or a seed that torch has given to the worker. `called`: by another one,
    which would use what it passes on. REQUIRES: _changes_only_seeds(function)."""
    while isinstance(function, functools.partial):
        function = function.func
    if any(function is known for known in _seeds_of_workers()):
        return True
    if type(function) is not FunctionType:
        return False
    if (function.__module__, function.__qualname__) in _KNOWN:
        return True
    code = function.__code__
    arguments = set() if called else set(code.co_varnames[: code.co_argcount])
    for step in dis.get_instructions(code):
        names = set(step.argval) if isinstance(step.argval, tuple) else {step.argval}
        if step.opname.startswith("LOAD_FAST") and names & arguments:
            return True
        if step.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")) and step.argval in _SEEDS_OF_WORKERS:
            return True
        if step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) and _differs_by_worker(function.__globals__.get(step.argval), called=True):
            return True
    return False


def _harmless(step: dis.Instruction, function: FunctionType, outer: dict, depth: int) -> bool:
    name = step.opname
    if name.startswith(_FORBIDDEN):
        return False
    if name.startswith(("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER")):
        return step.argval in _ATTRIBUTES
    if name.startswith("IMPORT_NAME"):
        return step.argval in _MODULES
    if name.startswith(("LOAD_GLOBAL", "LOAD_NAME")):
        missing = object()
        value = function.__globals__.get(step.argval, getattr(builtins, step.argval, missing))
        return _known_value(value, depth)
    if name.startswith(("LOAD_DEREF", "LOAD_CLASSDEREF")):
        try:
            return _known_value(outer[step.argval].cell_contents, depth)
        except (KeyError, ValueError):
            return False
    return True


def _known_value(value: Any, depth: int) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__ in _MODULES
    if type(value) in (int, str, bool, type(None)):
        return True
    if any(value is known for known in (*_BUILTINS, *_seeding_functions())):
        return True
    return _changes_only_seeds(value, depth + 1)


def _seeding_functions() -> list:
    numpy = sys.modules.get("numpy")
    return [random.seed, torch.manual_seed, *_seeds_of_workers(), *([] if numpy is None else [numpy.random.seed])]


def _seeds_of_workers() -> list:
    numpy = sys.modules.get("numpy")
    return [torch.initial_seed, torch.utils.data.get_worker_info, *([] if numpy is None else [numpy.random.get_state])]
