"""Cleans up after a `storm-spark dev` has ended in any way.

    python -m storm_on_spark.cli.dev.guard FOLDER FILE DESCRIPTOR

The `storm-spark dev` starts this process, and writes a line `PID START` to it for each process that it starts. When
this stream ends, the `storm-spark dev` has ended. The guard then kills the remaining processes, and the drivers of the
supervisors, which outlive supervisors. Then it removes the folder, and the file that other commands find it by.

Everything that the daemons start carries a mark in its environment. Where there is a `/proc`, this also finds processes
that have not yet written a file about themselves.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final

from storm_on_spark.cli.client.dev_record import DevFile
from storm_on_spark.cluster.driver.files import RunFolder
from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.supervisor.process import find
from storm_on_spark.runtime.processes.sessions import kill_session, session_members
from storm_on_spark.spark.session.folders.dirs import remove_scratch_of_the_dead

MARK: Final = "STORM_SPARK_DEV"
"""Environment variable: the folder of the cluster that a process belongs to."""
_PROC: Final = Path("/proc")
_KILL_SECS: Final = 15.0
_PAUSE_SECS: Final = 0.02


def main() -> None:
    """Waits for the end, and cleans up."""
    folder, file, descriptor = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(descriptor, False)
    # Only the stream announces the end, even if a terminal or the system signals all processes.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Don't keep a terminal or pipe of the parent open.
    with Path(os.devnull).open("r+b") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    children = [line.split() for line in sys.stdin]
    clear_up(folder, [(int(pid), start[0]) for pid, *start in children if start])
    DevFile(descriptor, file).remove()


def clear_up(folder: Path, children: list[tuple[int, str]]) -> None:
    """Kills the remaining processes of a cluster, and removes its folder.

    Args:
        folder: the cluster's folder.
        children: process id, and start as returned by `started_at`, of the processes that it has started, each the
            leader of a session.
    """
    deadline = time.monotonic() + _KILL_SECS
    for pid, started in children:
        kill_session(pid, started)
    while any(session_members(pid, started) for pid, started in children) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECS)
        for pid, started in children:
            kill_session(pid, started)
    # The supervisors are gone, so no other driver starts.
    for slot in folder.glob("supervisor-*/supervisor/slots/*"):
        _kill_driver(slot, deadline)
    while (left := _marked(folder)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_SECS)
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
    # Spark's sockets are elsewhere if the folder's path is too long for them.
    remove_scratch_of_the_dead()


def _marked(folder: Path) -> list[int]:
    """Returns the ids of the processes that carry the cluster's mark."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for entry in _PROC.glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return found


def _kill_driver(slot: Path, deadline: float) -> None:
    with contextlib.suppress(ClusterError, OSError):
        found = find(RunFolder(slot))
        while found is not None and found[0].state() != "gone" and time.monotonic() < deadline:
            found[0].kill()
            time.sleep(_PAUSE_SECS)


if __name__ == "__main__":
    main()
