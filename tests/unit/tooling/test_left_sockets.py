"""Sockets that are left to the garbage collector."""

from __future__ import annotations

import gc
import socket
import sysconfig
import warnings
from collections.abc import Callable

import left_sockets
import pytest

LIBRARY = f"{sysconfig.get_path('purelib')}/a_library/connections.py"


def in_a_library() -> Callable[[], object]:
    """Returns a function of a library that leaves a socket to the garbage collector, with what refers to it."""
    found: dict[str, Callable[[], object]] = {}
    code = "import socket\n\ndef leave():\n    circle = [socket.socket()]\n    circle.append(circle)\n"
    exec(compile(code, LIBRARY, "exec"), found)
    return found["leave"]


def test_one_of_the_project_is_a_warning_that_says_where_it_was_made() -> None:
    with pytest.warns(ResourceWarning, match=rf"unclosed <socket.socket .*, made in {__file__}:\d+"):
        socket.socket()


def test_one_of_a_library_is_closed_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_sockets, "left_by_libraries", found := left_sockets.Counter())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_a_library()()
        gc.collect()
    assert found == {f"{LIBRARY}:4": 1}


def test_one_that_is_closed_is_nobodys_matter(recwarn: pytest.WarningsRecorder) -> None:
    with socket.socket():
        pass
    first, second = socket.socketpair()
    first.close()
    second.close()
    assert [warning for warning in recwarn if warning.category is ResourceWarning] == []
