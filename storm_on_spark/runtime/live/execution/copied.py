"""Large snapshots at a barrier, pickled by a forked copy of the process while messages continue.

`fork` gives a copy of everything as it is at the barrier. The kernel copies a page of memory when one of both writes to
it, as Redis saves its data. The copy pickles, looks for the difference to the snapshot before, writes both to a
file in memory and ends. This process continues with the next round meanwhile.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import mmap
import os
import pickle
import signal
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.bolts.worker import CachedTask
from storm_on_spark.runtime.processes.parent import killed_with_parent
from storm_on_spark.runtime.state import deltas

log = logging.getLogger(__name__)

LARGE = 1 << 20
"""Bytes of a task's snapshot from which a copy takes it. The copy of a process costs what pickling a megabyte does."""
_LONGEST_SECS = 8.0
"""A copy that takes longer is ended: a lock that another thread held may never be free in it."""
_LOOK_SECS = 0.001

trusted = True
#: Whether this process forks copies of itself. False once a copy has failed.


def is_large(cached: CachedTask) -> bool:
    """Returns whether a copy can take a task's snapshot: attributes only, without calling a method of the bolt."""
    bolt = cached.bolt
    if not trusted or cached.version is None or bolt.saved is None or len(bolt.saved) < LARGE:
        return False
    return bolt.state is None and bolt.snapshots is not None and not bolt.snapshots.own_state


class Taken(NamedTuple):
    """A snapshot of one task."""

    snapshot: bytes
    delta: bytes | None
    """From the one that is saved; None where it is not much smaller."""
    transient: set[str]
    """Attributes that can't be pickled."""


class FailedCopyError(StormError):
    """A copy ended before all snapshots were taken, or took too long. The message names the tasks."""


class Copy:
    """A copy of this process that takes snapshots of tasks as they are now.

    Args:
        tasks: the bolts, between two executions.

    Raises:
        OSError: the system has no memory or process left.
    """

    def __init__(self, tasks: Sequence[CachedTask]) -> None:
        self.tasks = tasks
        self._file = os.memfd_create("snapshots")
        self._ends_at = time.monotonic() + _LONGEST_SECS
        self._status: int | None = None
        parent = os.getpid()
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of forks beside other threads. The copy only pickles, and is ended if it hangs.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:
            os.close(self._file)
            raise
        if not self._pid:
            _end_with_snapshots(tasks, self._file, parent)

    def over(self) -> bool:
        """Returns whether `taken` doesn't have to wait.

        Raises:
            FailedCopyError: it takes too long.
        """
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = status
            elif time.monotonic() > self._ends_at:
                self.close()
                raise _failed(f"did not end within {_LONGEST_SECS:.0f} s")
        return self._status is not None

    def taken(self) -> list[Taken | None]:
        """Waits for the snapshots, and returns them in the order of the tasks; None for each that is as it was.

        Raises:
            FailedCopyError: there are none.
        """
        while not self.over():
            time.sleep(_LOOK_SECS)
        found: list[Taken | None] | str = f"ended with status {self._status}"
        if self._status == 0:
            # Messages wait for this, so no bytes are copied twice.
            with mmap.mmap(self._file, 0, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ) as data:
                found = pickle.loads(data)
        self.close()
        if isinstance(found, str):
            raise _failed(found)
        return found

    def close(self) -> None:
        """Ends the copy if it is still running, and frees the file."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            _, self._status = os.waitpid(self._pid, 0)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def distrust() -> None:
    """Stops forking copies in this process. Later snapshots are taken without one."""
    global trusted
    trusted = False


def _failed(why: str) -> FailedCopyError:
    distrust()
    return FailedCopyError(f"snapshots were not taken beside the messages: a copy of the process {why}")


def _end_with_snapshots(tasks: Sequence[CachedTask], file: int, parent: int) -> None:
    """Takes the snapshots, in the copy, and ends it."""
    try:
        killed_with_parent(parent)
        # The copy must not run the first process's signal handlers.
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        gc.disable()  # It would write to all objects, and so copy them.
        try:
            answer: object = [_taken(cached) for cached in tasks]
        except StormError as error:
            answer = f"says: {error}"
        with open(file, "wb", closefd=False) as out:
            pickle.dump(answer, out, 5)
        os._exit(0)
    finally:
        os._exit(1)  # nothing of the first process may continue here


def _taken(cached: CachedTask) -> Taken | None:
    before, after, snapshots = cached.bolt.saved, cached.bolt.take(), cached.bolt.snapshots
    assert before is not None
    assert snapshots is not None
    return None if after == before else Taken(after, deltas.delta_of(before, after), snapshots.transient)
