"""Pickles of user objects for executors in other processes.

Classes and functions of the script travel by value. Large arrays travel beside the pickle, uncopied. Objects that would silently change on the way
are refused: memory that the trainer shares and may change, and random generators that each of torch's workers would advance for itself, unless
virtual workers do that.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import io
import mmap
import multiprocessing.managers
import multiprocessing.shared_memory
import pickle
import random
import sys
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import cloudpickle.cloudpickle as tracking
import torch

from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.shipping.descriptors import names_in
from sluice.shipping.failures import KeepsState, ManyObjects, NotLight, NotSendable, TooLarge
from sluice.shipping.made_anew import made_anew
from sluice.shipping.module_code import is_of_the_script
from sluice.shipping.plain_data import PlainParts
from sluice.shipping.self_change import attributes_within
from sluice.shipping.structure import DTYPE_NAMES, DTYPES, NOT_PICKLED_BY_TORCH, travels_in_arena
from sluice.shipping.users_modules import SCRIPT, globals_within_reach, is_of_the_user

_PROTOCOL = 5
_LARGE_BYTES = 64 << 10
_LIGHT_OBJECTS_BYTES = 2 << 20  # Of Python's own values: these take some 30 ms to pickle, and as long to make again.
_LIGHT_OBJECTS = 1000  # Tensors, arrays and objects of other classes: as long, as code of Python sees each.
_SPAWNED_MAIN = "__mp_main__"  # What the script is called in a process that multiprocessing has spawned.
_CODE = (type, FunctionType, ModuleType, CodeType, CellType, property, classmethod, staticmethod)
_COPYING = ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__")


def dump(value: Any, bytes_max: int, with_generators: bool, light: bool = False, parts: PlainParts | None = None) -> tuple[bytes, list[memoryview]]:
    """The pickle, and the large arrays it refers to as raw bytes that are still the arrays' own memory. Raises TooLarge as
    soon as all that exceeds `bytes_max`, NotSendable, KeepsState for a random generator unless `with_generators`, or
    whatever the user's objects raise when pickled. `light`: only what costs little to copy, and leaves no trace; NotLight otherwise. `parts`: takes
    the large containers of plain values, of which the pickle has the numbers."""
    if _SPAWNED_MAIN in sys.modules and _SPAWNED_MAIN not in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.register_pickle_by_value(sys.modules[_SPAWNED_MAIN])
    file, arrays = _BoundedFile(bytes_max, light), []

    def keep_in_pickle(buffer: pickle.PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes < _LARGE_BYTES:
            return True
        file.count(memory.nbytes)
        arrays.append(memory)
        return False

    pickler = (_Pickler if parts is None else _PicklerOfParts)(file, protocol=_PROTOCOL, buffer_callback=keep_in_pickle)
    pickler.with_generators, pickler.is_light, pickler.shared_memory = with_generators, light, _SharedMemory()
    pickler.modules, pickler.sentinels, pickler.parts, pickler.room = set(), {}, parts, file
    pickler.dump(value)
    if parts is not None and parts.are_shared(set(pickler.memo.copy())):
        raise NotLight("it has many objects, some of them in two places")
    if not with_generators:
        _require_no_generator_in(pickler.modules)
    return file.getvalue(), arrays


class _BoundedFile(io.BytesIO):
    """Memory for a pickle, within a number of bytes that it shares with what travels beside it. `light`: also within one of its own."""

    def __init__(self, bytes_max: int, light: bool) -> None:
        super().__init__()
        self._bytes_max = bytes_max
        self._bytes_left = bytes_max
        self._is_light = light

    def write(self, data: Any) -> int:
        self.count(memoryview(data).nbytes)
        if self._is_light and self.tell() > _LIGHT_OBJECTS_BYTES:
            raise NotLight("it has many objects")
        return super().write(data)

    def count(self, nbytes: int) -> None:
        self._bytes_left -= nbytes
        self.require(0)

    def require(self, nbytes: int) -> None:
        """Raises what writing so many would raise: before they are copied for that, which may read a file of any size."""
        if self._is_light and nbytes > _LIGHT_OBJECTS_BYTES:
            raise NotLight("it has a large array that is copied to be pickled")
        if nbytes > self._bytes_left:
            raise TooLarge(f"the pickled dataset has more than the {self._bytes_max} bytes that can be sent")


class _Pickler(cloudpickle.Pickler):
    with_generators = is_light = False
    shared_memory: _SharedMemory
    modules: set[str]  # Whose code is pickled by its name.
    sentinels: dict[type, dict[int, tuple[str, str]]]  # Where modules have objects of a type, by their identity.
    parts: PlainParts | None
    room: _BoundedFile
    _objects, _memory = 0, None  # Those met that are no code; that of the last tensor, which comes next and is known.
    _epochs: tuple[torch.Tensor, ...] = ()  # Shared memory that may travel: it says which epoch begins, and is read as it begins.

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._memory:
            return NotImplemented
        if self.is_light:
            _require_faithful_copy(obj)
            self._objects += not isinstance(obj, _CODE)
            if self._objects > _LIGHT_OBJECTS:
                raise ManyObjects("it has many objects")
        if isinstance(obj, ModuleType) and type(obj) is not ModuleType and sys.modules.get(obj.__name__) is obj:
            return importlib.import_module, (obj.__name__,)  # cloudpickle knows none with a class of its own, such as torch.backends.cudnn.
        if isinstance(obj, FunctionType) and obj is not torch.random.manual_seed and obj is torch.manual_seed:
            return getattr, (torch, "manual_seed")  # PyTorch 2.2 puts one that cannot be pickled in its place when it imports its compiler.
        if isinstance(obj, CodeType) and any(isinstance(each, frozenset) for each in obj.co_consts):
            make, arguments = self.dispatch_table[CodeType](obj)
            return make, tuple(_in_order(each) if each is obj.co_consts else each for each in arguments)
        if (reduced := made_anew(obj)) is not None:
            return reduced
        if isinstance(obj, FunctionType) and "globals" in obj.__code__.co_names and is_of_the_script(obj):
            raise NotSendable(f"its function {obj.__qualname__} looks into globals(), and only those that code names travel")
        if isinstance(obj, (type, FunctionType, ModuleType)):
            self.modules.add(obj.__name__ if isinstance(obj, ModuleType) else obj.__module__)
        if isinstance(obj, type):
            _name_for_all_ranks(obj)
            return _with_slots(obj, super().reducer_override(obj))
        if isinstance(obj, _hugging_face_streams()):
            self._epochs += (obj._epoch,)
        elif isinstance(obj, torch.Tensor):
            is_epoch = any(obj is epoch for epoch in self._epochs)
            if self.shared_memory.has_tensor(obj) and not is_epoch:
                raise NotSendable(f"it holds a {type(obj).__name__} in shared memory, which this process may change at any time")
            if travels_in_arena(obj) and _is_by_bytes(obj) and not is_epoch:
                self._memory = memory = obj.contiguous().view(-1).view(torch.uint8).numpy()
                return _tensor, (memory, DTYPE_NAMES[obj.dtype], tuple(obj.shape), None if obj.is_contiguous() else obj.stride())
        elif isinstance(obj, (multiprocessing.managers.BaseProxy, multiprocessing.shared_memory.SharedMemory)):
            raise NotSendable(f"it holds a {type(obj).__name__}, which belongs to this process and its forked children")
        elif isinstance(obj, io.IOBase) and not isinstance(obj, (io.BytesIO, io.StringIO)):
            raise NotSendable("it holds an open file, whose position forked children share")
        elif isinstance(obj, (random.Random, torch.Generator)):
            return _reduce_generator(obj) or self._reduce_own_generator(obj)
        elif "numpy" in sys.modules:
            numpy = sys.modules["numpy"]
            if isinstance(obj, numpy.ndarray):
                if self.shared_memory.has_array(obj):
                    raise NotSendable("it holds an array over shared memory, which this process may change at any time")
                self.room.require(0 if _is_pickled_uncopied(obj) else obj.nbytes)
            if isinstance(obj, (numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator)):
                return _reduce_generator(obj) or self._reduce_own_generator(obj)
        if (place := self._place_of_sentinel(obj)) is not None:
            return _global_of, place
        return super().reducer_override(obj)

    def _place_of_sentinel(self, obj: Any) -> tuple[str, str] | None:
        """Module and name of an object without state that a module has as a global, such as dataclasses.MISSING: code asks for its identity."""
        kind = type(obj)
        has_state = getattr(obj, "__dict__", None) or getattr(kind, "__slots__", None) or kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__
        if has_state or kind.__module__ == "__main__" or (kind.__module__ == "builtins" and kind is not object):
            return None
        if kind not in self.sentinels:
            names = [name for name in list(sys.modules) if is_of_the_user(name)] if kind is object else [kind.__module__]
            held = ((name, key, value) for name in names for key, value in list(vars(sys.modules.get(name, object)).items()) if type(value) is kind)
            self.sentinels[kind] = {id(value): (name, key) for name, key, value in held}
        return self.sentinels[kind].get(id(obj))

    def _reduce_own_generator(self, generator: Any) -> Any:
        kind = type(generator).__name__
        if any(generator is known for known in vars(sys.modules["__main__"]).values()):
            raise NotSendable(f"it holds a random generator of the script ({kind}), which this process may advance, too")
        if not self.with_generators:
            raise KeepsState(f"it holds a random generator of its own ({kind})")
        if isinstance(generator, torch.Generator):
            if generator.device.type != "cpu":
                raise NotSendable(f"it holds a random generator of {generator.device}")
            return _torch_generator, (generator.get_state().numpy().tobytes(),)
        return super().reducer_override(generator)


class _PicklerOfParts(_Pickler):
    """A class of its own, as Python code is called for each object."""

    def persistent_id(self, obj: Any) -> int | None:
        assert self.parts is not None
        number = self.parts.add(obj)
        if number is None and self.parts.has_long:
            raise NotLight("it has a long container that is not plain")
        return number


def _submodules_used(code: CodeType, dependencies: Iterable[Any]) -> list[ModuleType]:
    """The modules that are imported and whose names, below that of a package among the dependencies, consist of names in the code. cloudpickle finds
    them by a look at every module of the process, for each function of the script: a third of what the begin of an epoch takes. It does not look
    into functions within."""
    found, names = [], sorted(names_in(code))  # Equal in all ranks.
    waiting = [module for module in dependencies if isinstance(module, ModuleType) and getattr(module, "__package__", None)]
    while waiting:
        package = waiting.pop().__name__
        inner = [module for name in names if isinstance(module := sys.modules.get(f"{package}.{name}"), ModuleType)]
        found += inner
        waiting += inner
    return found


for _pickles in (tracking, sys.modules.get("cloudpickle.cloudpickle_fast")):  # cloudpickle before 3.0 has its pickler in a module of its own.
    if hasattr(_pickles, "_find_imported_submodules"):
        setattr(_pickles, "_find_imported_submodules", _submodules_used)


def _with_slots(definition: type, reduced: Any) -> Any:
    """cloudpickle makes a class first and sets its __slots__ afterwards. Its instances then have a __dict__, which those of the script's class lack: a
    batch of them could not be read at home."""
    if not vars(definition).get("__slots__") or reduced is NotImplemented or reduced[0] is not tracking._make_skeleton_class:
        return reduced
    make, (*before, attributes, identity, extra), *state = reduced
    return make, (*before, {**attributes, "__slots__": vars(definition)["__slots__"]}, identity, extra), *state


def _require_faithful_copy(obj: Any) -> None:
    """Raises NotLight for what a copy shows: its end calls a __del__, or the user's class has a word in what becomes of it."""
    kind = type(obj)
    if hasattr(kind, "__del__") and not isinstance(obj, io.IOBase):
        raise NotLight(f"the end of a copy of its {kind.__name__} calls a __del__")
    for definition in kind.__mro__:
        if definition.__module__ in SCRIPT or is_of_the_user(definition.__module__):
            own = [vars(definition)[name] for name in _COPYING if name in vars(definition)]
            if any(getattr(method, "__module__", None) == definition.__module__ for method in own):  # And not made by dataclasses.
                raise NotLight(f"its {kind.__name__} says itself what is copied")


def _require_no_generator_in(modules: set[str]) -> None:
    """Raises NotSendable for a random generator of one of these modules or of what they import, if that is the user's, and KeepsState for one
    within an object there, such as a transform: each of torch's workers would advance its own."""
    for name, value in globals_within_reach(modules):
        if _is_own_generator(value):
            raise NotSendable(f"{name} is a random generator ({type(value).__name__}), which this process may advance, too")
        if _holds_generator(value):
            raise KeepsState(f"{name} holds a random generator of its own")


def _holds_generator(value: Any) -> bool:
    if type(value).__module__.partition(".")[0] in sys.stdlib_module_names:
        return False
    try:
        return hasattr(value, "__dict__") and any(map(_is_own_generator, attributes_within(value)))
    except Exception as error:  # It stands for what is not here yet.
        pass_on_of_a_handler(error)
        return False


def _is_own_generator(value: Any) -> bool:
    kinds: tuple[type, ...] = (random.Random, torch.Generator)
    if (numpy := sys.modules.get("numpy")) is not None:
        kinds += (numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator)
    return isinstance(value, kinds) and not isinstance(value, random.SystemRandom) and _reduce_generator(value) is None


def _global_of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _is_by_bytes(tensor: torch.Tensor) -> bool:
    """Whether its own bytes are pickled. torch's way takes the whole storage along for each of its views, and 100 microseconds. One whose elements
    overlap has fewer bytes there."""
    return tensor.dtype in NOT_PICKLED_BY_TORCH or tensor.nbytes <= tensor.untyped_storage().nbytes()


def _is_pickled_uncopied(array: Any) -> bool:
    """Whether numpy hands over the array's own memory, or its objects. Of a class of its own, such as numpy.memmap, it makes bytes first."""
    return array.dtype.hasobject or (type(array) is sys.modules["numpy"].ndarray and (array.flags.c_contiguous or array.flags.f_contiguous))


def _tensor(memory: Any, dtype: str, shape: tuple, strides: tuple | None = None) -> torch.Tensor:
    plain = torch.from_numpy(memory).view(DTYPES[dtype]).view(shape)
    return plain if strides is None else torch.empty_strided(shape, strides, dtype=plain.dtype).copy_(plain)


class _SharedMemory:
    """The memory of this process that others see and it may write to itself: looked up once, when it is first asked for."""

    def __init__(self) -> None:
        self._mappings: list[tuple[int, int]] | None = None

    def has_tensor(self, tensor: torch.Tensor) -> bool:
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return False
        storage = tensor.untyped_storage()
        if storage.is_shared():  # As Tensor.is_shared, which takes ten times as long.
            return True
        # torch cannot resize a storage over memory that is not its own, such as shared memory. Old ones (2.2) do not tell.
        is_torchs_own = hasattr(storage, "resizable") and storage.resizable()
        return not is_torchs_own and storage.nbytes() > 0 and self._has(storage.data_ptr())

    def has_array(self, array: Any) -> bool:
        """Of a mapping, a multiprocessing array, a shared tensor."""
        owner = array
        while owner is not None:
            if isinstance(owner, torch.Tensor):
                return self.has_tensor(owner)
            if isinstance(owner, ctypes._SimpleCData | ctypes.Array | ctypes.Structure):
                return hasattr(owner, "_wrapper")  # That is how multiprocessing keeps the memory of its ctypes alive.
            if isinstance(owner, mmap.mmap):
                return getattr(array, "mode", "r+") not in ("r", "c")  # numpy.memmap says how it is mapped.
            owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
        return False

    def _has(self, address: int) -> bool:
        if self._mappings is None:
            with open("/proc/self/maps") as maps:
                lines = [line.split(maxsplit=2)[:2] for line in maps]
            self._mappings = [(int(start, 16), int(end, 16)) for place, flags in lines if "w" in flags and "s" in flags for start, end in [place.split("-")]]
        return any(start <= address < end for start, end in self._mappings)


def _hugging_face_streams() -> tuple[Any, ...]:
    """The class of Hugging Face's streaming data sets, where it is imported."""
    module = sys.modules.get("datasets.iterable_dataset")
    return (module.IterableDataset,) if module is not None else ()


def _reduce_generator(generator: Any) -> Any | None:
    """The process's own generators stay the process's own, wherever they are used. None for any other one."""
    for name, find in _PROCESS_GENERATORS.items():
        if name.split(".")[0] in sys.modules and generator is find():
            return _process_generator, (name,)
    return None


def _torch_generator(state: bytes) -> torch.Generator:
    return torch.Generator().set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


_PROCESS_GENERATORS = {
    "random": lambda: random._inst,
    "torch": lambda: torch.default_generator,
    "numpy.random": lambda: sys.modules["numpy"].random.mtrand._rand,
}


def _process_generator(name: str) -> Any:
    __import__(name)
    return _PROCESS_GENERATORS[name]()


class _Ordered:
    """In the place of a set among a code's constants. Its own order depends on the process, and all ranks have to send the same bytes."""

    def __init__(self, values: frozenset) -> None:
        self._values = sorted(values, key=repr)

    def __reduce__(self) -> tuple:
        return frozenset, (self._values,)


def _in_order(constants: tuple) -> tuple:
    return tuple(_Ordered(each) if isinstance(each, frozenset) else each for each in constants)


def _look_of(code: CodeType) -> bytes:
    """What it does, the same in all processes: a set's order is not."""
    constants = (_look_of(each) if isinstance(each, CodeType) else repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each).encode() for each in code.co_consts)
    return b"\0".join((code.co_code, " ".join(code.co_names).encode(), *constants))


_looks: dict[bytes, int] = {}  # How many classes of a look were named. A name is not used twice: a fork may still have the class that is gone here.


def _name_for_all_ranks(definition: type) -> None:
    """Gives a class of the script the identity that it has in every process of the job: cloudpickle would draw one at random.
    Classes that look alike are told apart by the order in which they are first pickled."""
    if definition in tracking._DYNAMIC_CLASS_TRACKER_BY_CLASS or tracking._should_pickle_by_reference(definition):
        return
    look = hashlib.sha256(" ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in definition.__mro__).encode())
    for name in sorted(vars(definition)):
        member = vars(definition)[name]
        function = getattr(member, "__func__", getattr(member, "fget", member))
        look.update(name.encode() + (_look_of(function.__code__) if isinstance(function, FunctionType) else b""))
    with tracking._DYNAMIC_CLASS_TRACKER_LOCK:
        number = _looks.get(look.digest(), 0)
        while (identity := f"{look.hexdigest()}-{number}") in tracking._DYNAMIC_CLASS_TRACKER_BY_ID:
            number += 1
        _looks[look.digest()] = number + 1
        tracking._DYNAMIC_CLASS_TRACKER_BY_CLASS[definition] = identity
        tracking._DYNAMIC_CLASS_TRACKER_BY_ID[identity] = definition
