"""What a forked worker would have shared with the trainer, taken along to an executor that was not forked.

Code of the user may read any of it: environment variables, torch's default dtype, Pillow's switches, warning filters. It is
captured when an iterator is made, which is when torch would fork. Whether images are lazy there (sluice.media.lazy_images), and audio
is native (sluice.media.native_audio), travels along, too.
"""

from __future__ import annotations

import contextlib
import decimal
import importlib
import os
import pickle
import socket
import sys
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch

from sluice.base.inherited import autocast_on_cpu, enter_autocast_on_cpu, opencv_threads, set_opencv_threads
from sluice.base.settings import Settings
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.shipping import module_values

# Variables that belong to the place where a process runs: what they decide was decided before any of the user's code.
_LOCAL_VARIABLES = ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JE_ARROW_MALLOC_CONF")
_OWN_PREFIX = "SLUICE"
# What launchers tell each process about itself.
RANK_VARIABLES = {
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
    "SLURM_TASK_PID", "SLURMD_NODENAME", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK",
    "PMI_RANK", "PMIX_RANK", "TORCHELASTIC_ERROR_FILE", "JOB_COMPLETION_INDEX", "PET_NODE_RANK", "HOSTNAME", "POD_NAME", "POD_IP",
}


class Numbers(NamedTuple):
    """How torch and `decimal` compute."""

    flushes_denormal: bool
    matrix_precision: str
    decimal_digits: int
    decimal_rounding: str

    @staticmethod
    def capture() -> Numbers:
        context = decimal.getcontext()
        return Numbers(_DENORMAL * _ONE == 0, torch.get_float32_matmul_precision(), context.prec, context.rounding)

    def enter(self) -> None:
        torch.set_flush_denormal(self.flushes_denormal)
        torch.set_float32_matmul_precision(self.matrix_precision)
        decimal.getcontext().prec, decimal.getcontext().rounding = self.decimal_digits, self.decimal_rounding


# What torch sets holds for all arithmetic of a thread, and Python's own takes no time. The compiler must not know the result.
_DENORMAL, _ONE = 1e-310, float("1")


@dataclass(frozen=True)
class Surroundings:
    """Plain values; `warning_filters` only those that can be pickled. `pillow` holds switches by module and name, `pillow_formats` what opens files of formats
    that other packages have registered, pickled."""

    environment: dict[str, str]
    default_dtype: str
    grad_enabled: bool
    autocast: tuple[bool, str]  # On the CPU, and its type.
    deterministic: tuple[bool, bool]
    warning_filters: list[tuple]
    pillow: dict[tuple[str, str], Any] = field(default_factory=dict)
    pillow_formats: dict[str, bytes] = field(default_factory=dict)
    image_backend: str | None = None
    numpy_errors: dict[str, str] | None = None
    lazy_images: bool = False
    native_audio: bool = False
    module_values: module_values.Values = field(default_factory=dict)
    opencv_threads: int | None = None
    numbers: Numbers | None = None
    recursion_limit: int = 1000
    socket_timeout_seconds: float | None = None

    @staticmethod
    def capture() -> Surroundings:
        """Those of this process and thread."""
        torchvision, numpy = sys.modules.get("torchvision"), sys.modules.get("numpy")
        autocast_enabled, autocast_dtype = autocast_on_cpu()
        return Surroundings(
            environment={name: value for name, value in os.environ.items() if _travels(name)},
            default_dtype=str(torch.get_default_dtype()).removeprefix("torch."),
            grad_enabled=torch.is_grad_enabled(),
            autocast=(autocast_enabled, str(autocast_dtype).removeprefix("torch.")),
            deterministic=_deterministic(),
            warning_filters=[entry for entry in warnings.filters if _picklable(entry)],
            pillow={
                (module, name): getattr(sys.modules[module], name)
                for module, name in _PILLOW_SWITCHES
                if module in sys.modules and _picklable(getattr(sys.modules[module], name, None))
            },
            pillow_formats=_formats_of_packages(),
            image_backend=torchvision.get_image_backend() if torchvision is not None else None,
            numpy_errors=numpy.geterr() if numpy is not None else None,
            lazy_images=wants_lazy_images(),
            native_audio=wants_native_audio(),
            module_values=module_values.capture(),
            opencv_threads=opencv_threads(),
            numbers=Numbers.capture(),
            recursion_limit=sys.getrecursionlimit(),
            socket_timeout_seconds=socket.getdefaulttimeout(),
        )

    def of_all_ranks(self) -> Surroundings:
        """Without what differs between the processes of one job."""
        environment = {name: value for name, value in self.environment.items() if name not in RANK_VARIABLES}
        return replace(self, environment=environment)

    def rank(self) -> frozenset[tuple[str, str]]:
        """What tells the processes of one job apart."""
        return frozenset((name, value) for name, value in self.environment.items() if name in RANK_VARIABLES)

    def enter(self) -> None:
        """Makes them this process's, but for what `enter_modules` does: for an executor, which has nothing of its own to lose."""
        for name in [name for name in os.environ if _travels(name) and name not in self.environment]:
            del os.environ[name]
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        torch.set_default_dtype(getattr(torch, self.default_dtype))
        torch.set_grad_enabled(self.grad_enabled)
        enter_autocast_on_cpu(self.autocast[0], getattr(torch, self.autocast[1]))
        if self.deterministic != _deterministic():  # The call imports torch's compiler: two CPU-seconds, for each pipeline.
            torch.use_deterministic_algorithms(self.deterministic[0], warn_only=self.deterministic[1])
        if self.numbers is not None and self.numbers != Numbers.capture():
            self.numbers.enter()
        sys.setrecursionlimit(self.recursion_limit)
        socket.setdefaulttimeout(self.socket_timeout_seconds)
        warnings.resetwarnings()  # Which also drops what the warnings module remembers about the old ones.
        filters: Any = warnings.filters  # A list, by its documents some sequence.
        filters[:] = self.warning_filters
        for (module, name), value in self.pillow.items():
            with contextlib.suppress(ImportError):
                __import__(module)
                setattr(sys.modules[module], name, value)
        _register_formats(self.pillow_formats)
        if self.image_backend is not None and "torchvision" in sys.modules:
            sys.modules["torchvision"].set_image_backend(self.image_backend)
        if self.numpy_errors is not None and "numpy" in sys.modules:
            sys.modules["numpy"].seterr(**self.numpy_errors)
        if self.lazy_images:
            make_images_lazy()
        elif "sluice.media.lazy_images" in sys.modules:
            sys.modules["sluice.media.lazy_images"].remove()

    def enter_modules(self) -> None:
        """What concerns modules that the pipeline has imported, once it is loaded."""
        module_values.enter(self.module_values)
        if self.opencv_threads is not None and opencv_threads() != self.opencv_threads:
            set_opencv_threads(self.opencv_threads)
        make_audio_native(self.native_audio)


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _formats_of_packages() -> dict[str, bytes]:
    """As pillow_heif registers one when the program asks it to."""
    image = sys.modules.get("PIL.Image")
    opened = image.OPEN.items() if image is not None else ()
    return {name: pickle.dumps(functions) for name, functions in opened if not functions[0].__module__.startswith(("PIL.", "sluice.")) and _picklable(functions)}


def _register_formats(formats: dict[str, bytes]) -> None:
    if formats:
        from PIL import Image

        Image.preinit()  # Pillow's own come first.
        for name, pickled in formats.items():
            with contextlib.suppress(Exception):  # Of a package that is not here.
                Image.register_open(name, *pickle.loads(pickled))


def wants_lazy_images() -> bool:
    """Whether the processes that make this one's batches open the JPEGs, PNGs and WebPs of PIL lazily, if they can."""
    return "PIL.Image" in sys.modules and Settings.from_environment().lazy_images


def find_lazy_images() -> None:
    """Before this process forks others, which make their images lazy."""
    with contextlib.suppress(ImportError):
        importlib.import_module("sluice.media.lazy_images").find()


def make_images_lazy() -> None:
    """In this process, if it can be."""
    with contextlib.suppress(ImportError):
        importlib.import_module("sluice.media.lazy_images").install()


def wants_native_audio() -> bool:
    """Whether the usual work of torchaudio and soundfile is done natively in this process and in those that make its batches, if they can."""
    return any(name in sys.modules for name in _AUDIO_MODULES) and Settings.from_environment().native_audio


def make_audio_native(wanted: bool) -> None:
    """In this process, if it can be; or as these packages have it."""
    if wanted and any(name in sys.modules for name in _AUDIO_MODULES):
        importlib.import_module("sluice.media.native_audio").install()
    elif not wanted and "sluice.media.native_audio" in sys.modules:
        sys.modules["sluice.media.native_audio"].remove()


_AUDIO_MODULES = ("torchaudio", "soundfile")
_PILLOW_SWITCHES = (("PIL.ImageFile", "LOAD_TRUNCATED_IMAGES"), ("PIL.Image", "MAX_IMAGE_PIXELS"))


def _travels(variable: str) -> bool:
    return variable not in _LOCAL_VARIABLES and not variable.startswith(_OWN_PREFIX)


def _picklable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception as error:
        pass_on_of_a_handler(error)
        return False
    return True


def module_path() -> list[str]:
    """Where this process finds modules, as absolute paths, and the script's folder by the name it was started with: Python
    resolves links in that one, and a script that comes from a ConfigMap lies behind a link to a folder that only its pod has."""
    entries = [os.path.abspath(entry) for entry in sys.path]
    if sys.argv and os.path.isfile(sys.argv[0]):
        entries.append(os.path.dirname(os.path.abspath(sys.argv[0])))
    return list(dict.fromkeys(entries))


def enter_module_path(entries: list[str], directory: str) -> None:
    """Finds modules where another process finds them."""
    sys.path += [entry for entry in entries if entry not in sys.path]
    with contextlib.suppress(OSError):  # A remote worker need not have that directory.
        os.chdir(directory)
