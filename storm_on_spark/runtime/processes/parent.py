"""Ends a process with the process that started it.

A closed socket shows that the other side is gone, unless another process inherited the socket, such as a child that a
spout forked. So the kernel is asked for a signal, which also ends a stopped process. The parent is watched as well, for
systems without such a signal.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from typing import Final

_PR_SET_PDEATHSIG = 1
_WATCH_SECONDS = 0.25
_HANG_UP_SECONDS = 5.0
"""How long a process may take to end after the SIGHUP that it got because its parent is gone."""

_DIE_WITH_PARENT: Final = """\
import ctypes, os, signal, sys
parent = int(sys.argv[1])
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == parent:
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit(f"{sys.argv[2]} can't be executed: {error.strerror}")
"""


_IN_OWN_GROUP: Final = """\
import os, sys
os.setpgid(0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def die_with(parent: int) -> None:
    """Ends this process by SIGKILL when its parent ends, or the parent's thread that started it.

    Args:
        parent: the parent's process id, passed by the parent. If another process is the parent now, this one ends at
            once.
    """
    killed_with_parent(parent)
    _watched(parent, signal.SIGKILL)


def hang_up_with(parent: int) -> None:
    """Ends this process like `die_with`, but with SIGHUP first, for a process that must clean up. SIGKILL follows.

    Call it when the process handles SIGHUP, or while the signal is blocked.
    """
    killed_with_parent(parent, signal.SIGHUP)
    _watched(parent, signal.SIGHUP)


def killed_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Does the same as `die_with`, without a thread, if the kernel has such a signal."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, by)
    # The parent may have ended before the signal was requested.
    _end_unless(parent, by)


def die_with_parent(command: list[str]) -> list[str]:
    """Returns a command that runs `command` in the same process, which the kernel kills when its parent has died.

    Linux only; elsewhere it is `command` itself. The parent is the *thread* that starts it: a thread that lives as
    long as the process has to do that. (A function run between fork and exec would do, too, but isn't safe where
    there are threads.)
    """
    if not sys.platform.startswith("linux"):
        return command
    return [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]


def in_own_group(command: list[str]) -> list[str]:
    """Returns a command that runs `command` in the same process, which leads a group of processes.

    Signals that a terminal, `kill` or `timeout` sends to its parent's group don't reach it. It is in the same session.
    """
    return [sys.executable, "-I", "-S", "-c", _IN_OWN_GROUP, *command]


def _watched(parent: int, by: signal.Signals) -> None:
    threading.Thread(target=_watch, args=(parent, by), name="parent-watch", daemon=True).start()


def _watch(parent: int, by: signal.Signals) -> None:
    _await_end(parent)
    while not _end_unless(parent, by):
        time.sleep(_WATCH_SECONDS)
    time.sleep(_HANG_UP_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _await_end(parent: int) -> None:
    """Waits for the end of the parent; returns at once where the kernel can't tell of it."""
    end = descriptor_of(parent)
    if end is None:
        return
    try:
        # Its id may have become another process's, but not while it is the parent.
        if os.getppid() == parent:
            select.select([end], [], [])
    finally:
        os.close(end)


def descriptor_of(pid: int) -> int | None:
    """Returns a descriptor that is readable once a process has ended; None where the kernel has none to give.

    Example:
        >>> end = descriptor_of(os.getpid())
        >>> end is None or select.select([end], [], [], 0)[0] == []
        True
        >>> if end is not None:
        ...     os.close(end)
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux; an old kernel, a container that forbids it, or it has ended
        return None


def _end_unless(parent: int, by: signal.Signals) -> bool:
    """Returns False if its parent is there; otherwise sends this process a signal and returns True."""
    if os.getppid() == parent:
        return False
    os.kill(os.getpid(), by)
    return True
