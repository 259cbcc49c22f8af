"""Which feeder serves this process, and the one connection to it that all loaders share."""

from __future__ import annotations

import atexit
import logging
import multiprocessing.util
import os
import threading
from dataclasses import replace

from sluice.base.notices import say_once
from sluice.base.settings import RAISE, Settings
from sluice.feeder.connection import Connection
from sluice.feeder.embedded import EmbeddedFeeder
from sluice.feeder.endpoint import Endpoint
from sluice.feeder.launch import Launch
from sluice.feeder.programs import feeder_command
from sluice.feeder.shared import SharedFeeder


class NoFeeder(Exception):
    """Nothing to connect to and nothing to start; the message says what to do about it."""


class SocketEndpoint:
    """A feeder that was started by another program: in a pod, the sidecar."""

    def __init__(self, path: str) -> None:
        self.name = path

    def address(self) -> str:
        return self.name

    def close(self) -> None:
        """Nothing of ours."""


_LAST = -100  # Of what multiprocessing calls at the end of a process: its loops and queues have ended by then.
_lock = threading.Lock()
_connections: dict[Settings, Connection] = {}


def shared_connection(settings: Settings) -> Connection:
    """The connection of this process to the feeder that the settings name, made if need be. Raises NoFeeder, also when a
    feeder that this process has to start itself does not come up within the patience at start."""
    settings = replace(settings, enabled=True, lowering=True, ahead=True, step_aside=True, report=False, explain=False, on_error=RAISE)  # The rest names a feeder.
    command = None
    if settings.feeder_socket is None:
        command = feeder_command(settings)
        if command is None:
            raise NoFeeder(
                "there is no feeder: SLUICE_FEEDER_SOCKET and SLUICE_FEEDER_BINARY are not set and this installation has no "
                "sluice/bundle (`make wheel` builds one that has it)"
            )
    elif os.path.exists(settings.feeder_socket) and not os.access(settings.feeder_socket, os.W_OK):
        raise NoFeeder(f"the feeder's socket {settings.feeder_socket} belongs to another user: run trainer and feeder as one user")
    with _lock:
        connection = _connections.get(settings)
        if connection is None:
            endpoint = _started_here(command, settings) if command is not None else SocketEndpoint(settings.feeder_socket or "")
            # A process that multiprocessing has forked ends without `atexit`.
            multiprocessing.util.Finalize(None, disconnect_all, exitpriority=_LAST)
            connection = _connections[settings] = Connection(
                endpoint, settings.start_patience_seconds, settings.loss_patience_seconds, identity=process_identity
            )
    # Beside a feeder of its own the process also has torch's workers, which beat computing in one process.
    if command is not None and not connection.ever_connected and not connection.wait_first_connected():
        raise NoFeeder(f"the feeder {command[-1]} does not come up: {connection.trouble or 'no answer'}")
    return connection


def _started_here(command: list[str], settings: Settings) -> Endpoint:
    launch = _launch(command, settings)
    return SharedFeeder(command, settings, launch) if launch is not None else EmbeddedFeeder(command, settings)


def _launch(command: list[str], settings: Settings) -> Launch | None:
    """The ranks with which this process shares the feeder that it starts; None: with none."""
    try:
        return Launch.of_this_thread(command, settings) if settings.share_feeder else None
    except OSError as obstacle:
        say_once(logging.WARNING, f"this rank has a feeder of its own, and shares none with the host's other ranks: {obstacle}")
        return None


def feeder_in_words(settings: Settings) -> str | None:
    """Which feeder `shared_connection` would use; None if there is none."""
    if settings.feeder_socket is not None:
        return f"at {settings.feeder_socket}"
    command = feeder_command(settings)
    if command is None:
        return None
    whose = "this process" if _launch(command, settings) is None else "the ranks of this host"
    return f"of {whose}, {command[-1]}"


def adds_no_cpu(settings: Settings, num_workers: int) -> bool:
    """Whether executors of that feeder would use no CPU that `num_workers` forks of this process do not use: it is this process's own, so
    it has no data workers, and it runs no more executors than that."""
    if settings.feeder_socket is not None or settings.threads > num_workers:
        return False
    command = feeder_command(settings)
    return command is not None and _launch(command, settings) is None


def disconnect_all() -> None:
    """Closes every connection and ends the feeders this process has started. Loaders connect anew when iterated."""
    with _lock:
        connections = list(_connections.values())
        _connections.clear()
    for connection in connections:
        if connection.owner_pid == os.getpid():
            connection.close()


def process_identity() -> dict[str, int]:
    """The rank of this process and the number of ranks, as torch.distributed or the launcher says."""
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
    return {"rank": _environment_number("RANK", 0), "world_size": _environment_number("WORLD_SIZE", 1)}


def _environment_number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for connection in _connections.values():
        connection.abandon()
    _connections.clear()


atexit.register(disconnect_all)
os.register_at_fork(after_in_child=_after_fork_in_child)
