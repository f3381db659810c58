"""Detects leftovers of a topology: threads, processes, queries, temporary files."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from storm_on_spark.testing.faults.processes import descendants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_MODULES = ("pyspark.daemon", "storm_on_spark.spark.worker_daemon")
"""Processes that a session keeps for its next query."""


@dataclass(frozen=True)
class Leftovers:
    """Everything that exists besides the session itself."""

    threads: frozenset[threading.Thread]
    processes: frozenset[tuple[int, str]]
    queries: frozenset[str]
    files: frozenset[str]

    @classmethod
    def now(cls, spark: SparkSession | None = None) -> Leftovers:
        """Returns everything that exists now."""
        queries = [] if spark is None else spark.streams.active
        return cls(
            frozenset(thread for thread in threading.enumerate() if not _is_py4j(thread) and not _has_ended(thread)),
            frozenset(
                (process.pid, " ".join(process.command)[:200])
                for process in descendants()
                if not any(module in process.command for module in _SPARK_MODULES)
            ),
            frozenset(f"{query.name} ({query.runId})" for query in queries),
            frozenset(path.name for path in Path(tempfile.gettempdir()).iterdir()),
        )

    def since(self, before: Leftovers) -> list[str]:
        """Returns what exists here but not in the other, one line per kind."""
        found = []
        for kind in ("threads", "processes", "queries", "files"):
            new = getattr(self, kind) - getattr(before, kind)
            if new:
                found.append(f"{kind}: {', '.join(sorted(map(str, new)))}")
        return found


@contextlib.contextmanager
def no_leaks(spark: SparkSession | None = None, timeout: float = 30) -> Iterator[None]:
    """Fails if the code inside the block leaves a thread, a process, a running query or a temporary file behind.

    Resources that a Spark session keeps for its next query do not count. Files are searched in `tempfile.gettempdir()`;
    if other programs use that too, set it to a folder only for the test run.

    Args:
        spark: the session, if one runs.
        timeout: how long, in seconds, things may take to end.

    Raises:
        AssertionError: something was left behind; the message lists it.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder, own_temporary_folder(Path(folder)), no_leaks():
        ...     thread = threading.Thread(target=int)
        ...     thread.start()
    """
    before = Leftovers.now(spark)
    yield
    deadline, pause = time.monotonic() + timeout, 0.01
    while left := Leftovers.now(spark).since(before):
        # Objects held only by a reference cycle are not leaks. A garbage collection delays the threads that are ending,
        # so each pause is longer than the previous one.
        gc.collect()
        if time.monotonic() > deadline:
            raise AssertionError("left behind: " + "; ".join(left))
        time.sleep(pause)
        pause = min(2 * pause, 1.0)


@contextlib.contextmanager
def own_temporary_folder(parent: Path) -> Iterator[Path]:
    """Puts temporary files of this process, and of those that it starts meanwhile, under `parent`."""
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(parent)
    try:
        yield parent
    finally:
        tempfile.tempdir = before
        if variable is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = variable


def _has_ended(thread: threading.Thread) -> bool:
    """Whether a thread that Python lists for good is gone.

    What a thread destroys as its last act may log: Py4J's connection of the thread does. A record names its thread, and
    before 3.13 Python makes a `_DummyThread` for one that it has just taken off its list, and never removes that.
    """
    is_dummy = isinstance(thread, threading._DummyThread)  # noqa: SLF001 # it has no public name
    return is_dummy and thread.ident not in sys._current_frames()  # nothing else tells


def _is_py4j(thread: threading.Thread) -> bool:
    """Whether the thread serves the connection between Python and the JVM, which lives as long as the session."""
    target = getattr(thread, "_target", None)
    return type(thread).__module__.startswith("py4j") or str(getattr(target, "__module__", "")).startswith("py4j")
