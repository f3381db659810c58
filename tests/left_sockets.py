"""Sockets that are left to the garbage collector, and who made them.

Python warns of such a socket when it is collected, which fails whatever test runs by then, and says nothing of its
maker. Here one that the project made fails the test with the place where it was made. One that a library made is
closed, and listed at the end of the run: kafka-python leaves those of connections that end while they are being made.
"""

from __future__ import annotations

import inspect
import os
import socket
import sysconfig
import warnings
from collections import Counter
from types import FrameType
from typing import Any

import pytest

_PASSED = (sysconfig.get_path("stdlib"), "<frozen ", __file__)
_LIBRARIES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

left_by_libraries: Counter[str] = Counter()
"""How many sockets were left by what a library did at a place, in this process and those that ran its tests."""
_makers: dict[int, str] = {}


def watch() -> None:
    """Notes from now on who makes each socket. Repeated calls change nothing."""
    if "__del__" in vars(socket.socket):
        return
    make, process = socket.socket.__init__, os.getpid()

    def made(self: socket.socket, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        _makers[id(self)] = maker_of(inspect.currentframe())

    def collected(self: socket.socket) -> None:
        maker = _makers.pop(id(self), "")
        if self.fileno() < 0:
            return
        shown = repr(self)
        self.close()
        if os.getpid() != process:
            return
        if maker.startswith(_LIBRARIES):
            left_by_libraries[maker] += 1
        else:
            warnings.warn(f"unclosed {shown}, made in {maker or 'an unknown place'}", ResourceWarning, stacklevel=2)

    socket.socket.__init__ = made
    socket.socket.__del__ = collected


def maker_of(frame: FrameType | None) -> str:
    """Returns the file and line that called the standard library for a socket."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_LIBRARIES) or not file.startswith(_PASSED):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands a worker's list to the process that started it."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_by_libraries"] = dict(left_by_libraries)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes the list of a worker."""
    left_by_libraries.update(getattr(node, "workeroutput", {}).get("left_by_libraries", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the places, the most frequent first."""
    if left_by_libraries:
        terminalreporter.section("sockets that libraries left to the garbage collector")
        for maker, count in left_by_libraries.most_common():
            terminalreporter.line(f"{count:6}  {maker}")
