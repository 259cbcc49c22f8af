"""Exceptions of user code, across a process boundary and back.

They arrive in the training loop as PyTorch's own workers deliver them: the same type, and a message that holds the remote
traceback.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import pickle
import sys
import traceback

from torch._utils import ExceptionWrapper

from sluice.shipping import module_values
from sluice.shipping.own_code import PickleReader

try:
    from cloudpickle import dumps as _dumps
except ImportError:  # pragma: no cover - cloudpickle is a declared dependency
    from pickle import dumps as _dumps


class NotSendable(Exception):
    """A pipeline cannot leave this process; the message says why."""


class TooLarge(NotSendable):
    """It has more bytes than can be sent. So it will at every epoch: it is not tried again."""


class NotLight(NotSendable):
    """A copy of a pipeline costs more than forks that inherit it, or is noticed."""


class ManyObjects(NotLight):
    """The same, for objects that are no plain values: no copy that shares these costs less."""


class KeepsState(NotSendable):
    """A pipeline changes while it is read, so that only virtual workers can make its batches; the message says what changes."""


class NotNative(Exception):
    """Why a pipeline stays Python, as one clause for people; or all the reasons for that."""

    def __init__(self, reason: str | list[str]) -> None:
        self.obstacles = [reason] if isinstance(reason, str) else reason
        super().__init__("; ".join(self.obstacles))


class BatchDoesNotFit(RuntimeError):
    """The arena is smaller than a batch; the message says both sizes."""


# The exception_type of every batch of a pipeline that the executor could not load. It is no fault of the user's samples, so the client makes such
# batches itself.
NOT_LOADED = "PipelineNotLoaded"


# The exception_type of a batch for which no interpreter came up or stayed: the client makes it itself.
EXECUTOR_LOST = "ExecutorLost"


_EXECUTOR = "sluice.executor.__main__"  # Its program, which is `__main__` there.


def lacks_the_script(error: BaseException) -> bool:
    """Whether an executor may fail alone, and the trainer and its forks not: it cannot read a pickle within a sample, such as a cached file, because
    that names a class of the script; or a module has no value here that the script has given it."""
    if module_values.lacking is not None and isinstance(error, Exception):
        return True
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return isinstance(error, AttributeError) and spec is not None and spec.name == _EXECUTOR and f"on {main!r}" in message_of(error)


def describe_not_loaded(error: BaseException) -> dict:
    """The fields of an `error` frame for a pipeline that cannot be unpickled there."""
    fields, _ = describe(error)
    lacking = f"; {module_values.lacking} has no value there" if module_values.lacking is not None else ""
    return {**fields, "exception_type": NOT_LOADED, "message": f"{type(error).__name__}: {fields['message']}{lacking}"}


def describe(error: BaseException) -> tuple[dict, bytes]:
    """The fields {exception_type, message, traceback} of an `error` frame, and its pickled class, empty if that cannot be pickled. The
    exception itself may hold anything; torch's workers send no more of it either."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    fields = {"exception_type": type(error).__name__, "message": message_of(error), "traceback": text}
    error.__traceback__ = None  # Its frames hold the computation, and a data set may keep the exception.
    try:
        blob = _dumps(type(error), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        blob = b""
    return fields, blob


def message_of(error: BaseException) -> str:
    """What it says, if it can."""
    try:
        return str(error)
    except Exception:  # Of a class of the user's, whose __str__ fails itself.
        return "<exception str() failed>"  # As Python's own tracebacks have it.


def exception_class(name: str, blob: bytes) -> type[BaseException]:
    """The class to raise: the pickled one, else the builtin of that name, else RuntimeError."""
    if blob:
        try:
            pickled = PickleReader(io.BytesIO(blob)).load()
        except Exception:
            pickled = None
        kind = pickled if isinstance(pickled, type) else type(pickled)  # Older executors have sent the exception.
        if issubclass(kind, Exception):
            return kind
    candidate = getattr(builtins, name, None)
    if isinstance(candidate, type) and issubclass(candidate, Exception):
        return candidate
    return RuntimeError


def reraise(fields: dict, blob: bytes, worker_id: int) -> None:
    """Raises what an `error` frame describes, worded as torch words a worker's exception. Its traceback holds the iterator, so no frame there
    may hold the exception, as torch's does: only the garbage collector would end the iterator's workers then."""
    wrapper = ExceptionWrapper.__new__(ExceptionWrapper)
    wrapper.exc_type = exception_class(fields.get("exception_type", ""), blob)
    wrapper.exc_msg = fields.get("traceback") or f"{fields.get('exception_type', 'error')}: {fields.get('message', '')}"
    wrapper.where = f"in DataLoader worker process {worker_id}"
    try:
        wrapper.reraise()
    except BaseException as error:
        raise error.with_traceback(None)


def note_sampler_error(error: Exception) -> Exception:
    """The same: the loop raises it, as torch does."""
    with contextlib.suppress(AttributeError):  # One with slots.
        error._sluice_is_of_the_sampler = True  # type: ignore[attr-defined]
    return error


def is_of_the_sampler(error: Exception) -> bool:
    """Whether a loop's sampler has raised it."""
    return getattr(error, "_sluice_is_of_the_sampler", False)
