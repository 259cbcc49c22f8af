"""Where a process's feeder is, and why it may not be there."""

from __future__ import annotations

from typing import Protocol


class FeederUnavailable(Exception):
    """There is no feeder to connect to at present; the message says why."""


class FeederBroken(FeederUnavailable):
    """It cannot be started, or ends as it starts."""


class Endpoint(Protocol):
    """Where the feeder is, and whatever has to be done for it to be there."""

    @property
    def name(self) -> str:
        """For people."""

    def address(self) -> str:
        """The path of its Unix socket. Called before each attempt to connect, by the connection's thread. Raises
        FeederUnavailable, or FeederBroken or OSError if no later call will find it."""

    def close(self) -> None:
        """The process needs it no more."""
