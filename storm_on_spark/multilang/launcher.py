"""Starts a child's command, stays beside it, and ends it with all that it has started.

A separate program, because a process with threads can't safely run Python between fork and exec. It leads the
session of the command. What the command starts and leaves, also in separate sessions, becomes its child (it is
their subreaper), so it finds all of them when the command has ended, or the worker that wanted it. The kernel tells it
of the worker's end. The command itself is killed by the kernel if this program is killed.

Arguments: id of the parent, then the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
PARENT_DIED = signal.SIGUSR2
"""From the kernel, also when only the parent's thread has ended that started this program."""
_LOOK_SECS = 1.0
"""How often the parent is looked at where the kernel says nothing."""
_END_SECS = 30.0
"""For descendants to end; one may wait for a disk."""


def main(parent: int, command: list[str]) -> None:
    """Runs `command` and ends as it ended; its exit code is 127 if it could not be started."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    for number in (PARENT_DIED, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _noted)
    _prctl(_PR_SET_PDEATHSIG, PARENT_DIED)
    if os.getppid() != parent:
        os._exit(1)
    child = os.fork()
    if child == 0:
        _become(command)
    # Otherwise it would not be seen that the command has closed them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    status: int | None = None
    while status is None and os.getppid() == parent:
        if select.select([reads], [], [], _LOOK_SECS)[0] and set(os.read(reads, 1 << 10)) - {
            PARENT_DIED,
            signal.SIGCHLD,
        }:
            break
        status = _reaped(child)
    _end_all()
    if status is None:
        status = int(signal.SIGKILL)
    if os.WIFSIGNALED(status):
        killed_by = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if killed_by != signal.SIGKILL:
            signal.signal(killed_by, signal.SIG_DFL)
        os.kill(os.getpid(), killed_by)
    os._exit(os.WEXITSTATUS(status))


def _become(command: list[str]) -> None:
    signal.set_wakeup_fd(-1)
    # Python ignores SIGPIPE; what it becomes should not.
    for number in (PARENT_DIED, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    launcher = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 # a list, and no shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(127)


def _reaped(child: int) -> int | None:
    """Reaps all that has ended; returns the status of the command if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                found = ended[1]
    return found


def _end_all() -> None:
    sessions = _sessions()
    deadline = time.monotonic() + _END_SECS
    while sessions.kill_descendants(os.getpid()) and time.monotonic() < deadline:
        _reaped(0)
        time.sleep(0.005)


def _sessions() -> Any:
    """Returns `storm_on_spark.runtime.processes.sessions`, without its packages: this program starts often."""
    path = Path(__file__).parents[1] / "runtime" / "processes" / "sessions.py"
    spec = importlib.util.spec_from_file_location("sessions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(option, value)


def _noted(number: int, frame: object) -> None:
    """The signal's number is read from the wake-up pipe."""


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
