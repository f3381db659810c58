"""Processes that carry a mark, and waiting."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from lab.suite.scenario import ScenarioError

WAIT_SECS: Final = 60.0
"""More than anything takes, even on a busy machine."""
POLL_SECS: Final = 0.01
_SHOWN: Final = 120

T = TypeVar("T")


class Marked:
    """Processes with a mark in their environment, which all that they start inherits.

    Args:
        variable: of the environment.
    """

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._value = f"{os.getpid()}-{time.monotonic_ns()}"

    def environment(self, name: object) -> dict[str, str]:
        """Returns the variables that mark the processes of one name, in addition to this environment."""
        return {self._variable: f"{self._value}.{name}"}

    def find(self, name: object | None = None) -> dict[int, str]:
        """Returns the command lines of the processes of one name, or of all, by process id."""
        start = f"{self._variable}={self._value}."
        found = {}
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                with contextlib.suppress(OSError):
                    entries = (path / "environ").read_bytes().decode(errors="replace").split("\0")
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    if any(entry.startswith(start) if name is None else entry == f"{start}{name}" for entry in entries):
                        found[int(path.name)] = command[:_SHOWN]
        return found

    def signal(self, number: signal.Signals, name: object | None = None) -> int:
        """Sends a signal to the processes of one name, or to all; returns to how many."""
        found = self.find(name)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(found)


def wait_for(condition: Callable[[], T], what: str, timeout: float = WAIT_SECS, pause: float = POLL_SECS) -> T:
    """Returns the first true value of a condition.

    Args:
        condition: asked again and again.
        what: for the error.
        timeout: seconds to wait at most.
        pause: seconds between two looks.

    Raises:
        ScenarioError: there is none in time.
    """
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise ScenarioError(f"not within {timeout:g} s: {what}")
        time.sleep(pause)
    return found
