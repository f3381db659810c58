"""Connections break, and the processes at both ends survive."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.faults.run import Run
from lab.suite.scenario import ScenarioError
from storm_on_spark.testing import spout_hosts

_PIDFD_GETFD = 438
"""The number of the system call, on all architectures of Linux (5.6 or later); Python has no name for it."""


def no_foreign_sockets() -> str | None:
    """The reason why the sockets of another process can't be reached here; None if they can."""
    if not hasattr(os, "pidfd_open"):
        return "no pidfd_open on this system"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            with _socket_of(os.getpid(), ours.fileno()):
                return None
        except OSError as error:
            return f"no pidfd_getfd here: {error}"


def live_connection(run: Run, times: int) -> None:
    """Breaks the connection between two live processes, and those of spout hosts with the first one, in turn."""
    faults = run.shuffled([_between_live_processes, _to_spout_hosts])
    run.start()
    for number in run.moments(times):
        faults[number % len(faults)](run)


def _between_live_processes(run: Run) -> None:
    [first], [member] = run.live_processes("process"), run.live_processes("member")
    _break(run, member, f"live process {member} with the first one", [first])


def _to_spout_hosts(run: Run) -> None:
    [first] = run.live_processes("process")
    _break(run, first, f"live process {first} with spout hosts", spout_hosts(run.pid))


def _break(run: Run, pid: int, what: str, peers: Collection[int]) -> None:
    at, proofs = time.monotonic_ns(), []
    for descriptor in _sockets(pid):
        with _socket_of(pid, descriptor) as end:
            if end.family == socket.AF_UNIX and _peer(end) in peers:
                proofs.append(_broken(end))
    if not proofs:
        raise ScenarioError(f"there is no connection of {what}, {peers}")
    run.injected(f"{len(proofs)} connections of {what} broken", proofs[0], at)


def _broken(end: socket.socket) -> str:
    end.shutdown(socket.SHUT_RDWR)
    try:
        end.send(b"x", socket.MSG_NOSIGNAL)
    except BrokenPipeError as error:
        return f"{error} for who sends on it"
    raise ScenarioError("bytes can be sent on a connection that was shut down")


def _sockets(pid: int) -> Iterator[int]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        if str(entry.readlink()).startswith("socket:"):
            yield int(entry.name)


@contextmanager
def _socket_of(pid: int, descriptor: int) -> Iterator[socket.socket]:
    """The socket of another process. Operations affect that process's socket; closing this copy leaves it open.

    Raises:
        OSError: the process has none with this number, or the kernel doesn't allow it.
    """
    process = os.pidfd_open(pid)
    try:
        call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
        found = call(_PIDFD_GETFD, process, descriptor, 0)
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(process)
    with socket.socket(fileno=found) as end:
        yield end


def _peer(end: socket.socket) -> int:
    found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", found)[0]
    return pid
