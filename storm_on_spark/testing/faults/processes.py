"""Faults, injected into a running topology: finding its processes and killing them.

Every function returns only once its fault has happened, and says which, so that a fault test can prove it. They need
`/proc`, and act on descendants of this process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storm_on_spark.api.errors import SetupError

_PROC = Path("/proc")
_WORKER_MARK = "pyspark.worker"
_DAEMON_MARKS = ("storm_on_spark.spark.worker_daemon", "pyspark.daemon")
_HOST_MARK = "storm_on_spark.runtime.spouts.spout_host"
_LIVE_MARK = "storm_on_spark.runtime.live.remote.process"
_EXECUTOR_MARK = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class ProcessInfo:
    """A running process, as `/proc` shows it."""

    pid: int
    parent: int
    command: tuple[str, ...]
    """The program and its arguments."""
    state: str
    """`R` running, `S` sleeping, `T` stopped, `Z` zombie, ..."""


def python_workers(root: int | None = None) -> list[int]:
    """Returns the process ids of the Python workers in which Spark executes bolts.

    Args:
        root: the process whose descendants are searched; this one for None.
    """
    processes = {process.pid: process for process in descendants(root)}
    return sorted(
        process.pid
        for process in processes.values()
        # Workers are forks of a daemon and have its command line.
        if _is_daemon(process) and process.parent in processes and _is_daemon(processes[process.parent])
    )


def spout_hosts(root: int | None = None) -> list[int]:
    """Returns the process ids of spout hosts.

    Args:
        root: the process whose descendants are searched; this one for None.
    """
    return sorted(process.pid for process in descendants(root) if _HOST_MARK in process.command)


def executors(root: int | None = None) -> list[int]:
    """Returns the process ids of Spark's executors; only a `local-cluster` or a worker node has any.

    Args:
        root: the process whose descendants are searched; this one for None.
    """
    return sorted(
        process.pid for process in descendants(root) if any(part.endswith(_EXECUTOR_MARK) for part in process.command)
    )


def live_processes_on_executors(root: int | None = None) -> list[int]:
    """Returns the process ids of live processes on executors; the first one of a topology is beside the driver.

    Args:
        root: the process whose descendants are searched, such as a worker of Spark's; this one for None.
    """
    return sorted(process.pid for process in descendants(root) if _LIVE_MARK in process.command)


def kill_python_worker(timeout: float = 10) -> int:
    """Kills a Python worker of Spark by SIGKILL; see `kill_one`."""
    return kill_one(python_workers, "Python worker", timeout)


def kill_spout_host(timeout: float = 10) -> int:
    """Kills a spout host by SIGKILL; see `kill_one`."""
    return kill_one(spout_hosts, "spout host", timeout)


def kill_executor(timeout: float = 10) -> int:
    """Kills an executor of Spark by SIGKILL; see `kill_one`."""
    return kill_one(executors, "executor", timeout)


def kill_one(find: Callable[[], list[int]], what: str, timeout: float = 10) -> int:
    """Waits until there is such a process, kills the first one by SIGKILL, and waits until it has ended.

    Args:
        find: returns the candidates.
        what: their name in messages.
        timeout: the longest wait in seconds.

    Returns:
        The id of the process that was killed.

    Raises:
        TimeoutError: there was none to kill, or it did not end.
    """
    deadline = time.monotonic() + timeout
    while True:
        for pid in find():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            wait_gone(pid, max(1.0, deadline - time.monotonic()))
            return pid
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} appeared within {timeout} s")
        time.sleep(0.01)


def wait_gone(pid: int, timeout: float = 10) -> None:
    """Waits until a process has ended; one that its parent has not reaped yet counts as ended.

    Raises:
        TimeoutError: it did not end in time.
    """
    deadline = time.monotonic() + timeout
    while (process := _read(pid)) is not None and process.state != "Z":
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} ({' '.join(process.command)[:200]}) is still there")
        time.sleep(0.01)


def descendants(root: int | None = None) -> Iterator[ProcessInfo]:
    """Yields the running processes below one, zombies left out.

    Args:
        root: the process; this one for None.

    Raises:
        SetupError: there is no `/proc`.

    Example:
        >>> import subprocess, sys
        >>> child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        >>> child.pid in [process.pid for process in descendants()]
        True
        >>> child.kill(); _ = child.communicate()
    """
    if not (_PROC / "self").exists():
        raise SetupError("fault injection needs /proc, which this system does not have; use Linux")
    found = [process for path in _PROC.iterdir() if path.name.isdigit() and (process := _read(int(path.name)))]
    below = {os.getpid() if root is None else root}
    # Parents may follow their children in the list, so repeat until nothing is added.
    while added := [process for process in found if process.parent in below and process.pid not in below]:
        below.update(process.pid for process in added)
    for process in found:
        if process.pid in below and process.pid != root and process.parent in below and process.state != "Z":
            yield process


def _is_daemon(process: ProcessInfo) -> bool:
    command = process.command
    return _WORKER_MARK in command and any(mark in command for mark in _DAEMON_MARKS)


def _read(pid: int) -> ProcessInfo | None:
    """Returns a process, or None if it is gone."""
    try:
        status = (_PROC / str(pid) / "stat").read_text()
        command = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    # The name is in parentheses and may contain anything, including parentheses.
    state, parent = status.rpartition(")")[2].split()[:2]
    parts = tuple(part.decode(errors="replace") for part in command.split(b"\0") if part)
    return ProcessInfo(pid, int(parent), parts, state)
