"""What processes use: processor time, memory, files."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from storm_on_spark.spark import worker_daemon

_SAMPLE_SECS = 2.0
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, OSError)


class ProcessTree:
    """A process and all below it.

    Args:
        pid: the process at the top; this one for None.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._top = psutil.Process(pid)
        self._python_mb = self._worker_mb = 0.0
        #: Processor seconds at the last check: of each process itself, and of ended children that it waited for.
        self._seen: dict[psutil.Process, tuple[float, float]] = {}
        #: Processor seconds of ended processes that nobody waited for.
        self._lost = 0.0

    def cpu_seconds(self) -> float:
        """Returns the processor time so far, that of processes that ended included.

        For an ended process that nobody waits for, such as Spark's workers, it is the value at the last check; `wait`
        checks every two seconds.
        """
        seen = {}
        for process in self._processes():
            with contextlib.suppress(*_GONE):
                times = process.cpu_times()
                seen[process] = times.user + times.system, times.children_user + times.children_system
        ended = sum(sum(used) for process, used in self._seen.items() if process not in seen)
        inherited = sum(below - self._seen[process][1] for process, (_, below) in seen.items() if process in self._seen)
        self._lost += max(0.0, ended - inherited)
        self._seen = seen
        return self._lost + sum(map(sum, seen.values()))

    def cpu_by_part(self, parts: Mapping[str, str]) -> dict[str, float]:
        """Returns the processor time so far, in seconds, of the processes that run now, by what they do.

        Args:
            parts: name of a part -> a text in the command line of its processes. The top process is `driver`, Java
                processes are `jvm`, and all others `others`.
        """
        found = dict.fromkeys(("driver", "jvm", *parts, "others"), 0.0)
        for process in self._processes():
            with contextlib.suppress(*_GONE):
                line = " ".join(process.cmdline())
                named = (part for part, text in parts.items() if text in line)
                rest = "jvm" if _is_java(process) else next(named, "others")
                times = process.cpu_times()
                found["driver" if process == self._top else rest] += times.user + times.system
        return found

    def wait(self, seconds: float) -> None:
        """Waits, and measures memory from time to time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._sample()
            time.sleep(max(0.0, min(left, _SAMPLE_SECS, end - time.monotonic())))

    def _sample(self) -> None:
        """Adds up Python processes other than the top one; a shared page counts once in total."""
        self.cpu_seconds()
        below = self._processes()[1:]
        total = sum(_proportional_mb(process.pid) for process in below if not _is_java(process))
        self._python_mb = max(self._python_mb, total)
        workers = (process.pid for process in below if _is_worker(process))
        self._worker_mb = max(self._worker_mb, *map(_peak_mb, workers), 0.0)

    def peak_memory_mb(self) -> dict[str, float]:
        """Returns the most memory that each kind of process has had resident.

        `driver` is the process at the top, `jvm` the Java processes, `python` all others at the same time, as seen
        by `wait`.
        """
        found = {"driver": _peak_mb(self._top.pid), "jvm": 0.0, "python": self._python_mb}
        if _is_java(self._top):
            found = {"jvm": _peak_mb(self._top.pid), "python": self._python_mb}
        for process in self._processes()[1:]:
            if _is_java(process):
                found["jvm"] += _peak_mb(process.pid)
        return {kind: round(mb, 1) for kind, mb in found.items()}

    @property
    def peak_worker_mb(self) -> float:
        """The most that any of Spark's Python workers has had resident, as seen by `wait`; shared pages count whole."""
        return round(self._worker_mb, 1)

    def memory_mb(self) -> dict[str, float]:
        """Returns the memory of each kind of process now; pages that processes share count in parts."""
        found = {"driver": _proportional_mb(self._top.pid), "jvm": 0.0, "python": 0.0}
        for process in self._processes()[1:]:
            found["jvm" if _is_java(process) else "python"] += _proportional_mb(process.pid)
        return {kind: round(mb, 1) for kind, mb in found.items()}

    def open_files(self) -> int:
        """Returns how many files, sockets and the like the processes have open."""
        total = 0
        for process in self._processes():
            with contextlib.suppress(*_GONE):
                total += process.num_fds()
        return total

    def kill(self) -> None:
        """Kills all remaining processes."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._top, *self._top.children(recursive=True)]
        except _GONE:
            return []


def _is_java(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except _GONE:
        return False


def _is_worker(process: psutil.Process) -> bool:
    """Returns whether a process is Spark's Python daemon or one of its forks."""
    try:
        return worker_daemon.__name__ in process.cmdline()
    except _GONE:
        return False


def _peak_mb(pid: int) -> float:
    return _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM") / 1024


def _proportional_mb(pid: int) -> float:
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss") / 1024


def _kilobytes(file: Path, name: str) -> int:
    try:
        found = re.search(rf"^{name}:\s*(\d+) kB", file.read_text(), re.MULTILINE)
    except _GONE:
        return 0
    return int(found[1]) if found else 0


def sizes(folder: Path) -> dict[str, int]:
    """Returns the size of each file below a folder."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)  # noqa: PTH118 # thousands of files: no objects for them
            try:
                found[path] = os.stat(path).st_size  # noqa: PTH116
            except OSError:
                continue
    return found


def grown(before: dict[str, int], after: dict[str, int]) -> int:
    """Returns the bytes written between two calls of `sizes`; files removed again meanwhile are not seen."""
    return sum(max(0, size - before.get(path, 0)) for path, size in after.items())
