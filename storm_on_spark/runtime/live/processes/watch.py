"""A thread of the driver that looks at the live process for as long as the topology runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterable
from typing import Final

from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK
from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.live import client
from storm_on_spark.runtime.processes.parent import descriptor_of
from storm_on_spark.runtime.processes.wake import Wake
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.spouts.watching.holding import in_words

LOOK_SECS: Final = 1.0
"""How often the process is looked at."""
_IDLE_LOOKS: Final = 2
"""How many such times pass between two looks at a process that executes nothing. Its end is noticed all the same."""
_END_SECS: Final = 1.0


class LiveWatch:
    """Looks at the live process within its block: the process ends if nobody does for some time.

    Spark's question for the next micro-batch is a look, too. While a micro-batch runs there is none, and a micro-batch
    may take minutes: Spark compiles and starts the first one on a busy machine, or one executes a long log again.

    Args:
        start_id: the run.
        look: looks once; returns how the process is, None if there is none. Called on this thread.
        report: takes errors of the topology that don't end it: that the process has ended, or can't have a socket.
        secs: how often it looks.
    """

    def __init__(
        self,
        start_id: str,
        look: Callable[[], Status | None],
        report: Callable[[Iterable[Failure]], object],
        secs: float = LOOK_SECS,
    ) -> None:
        self._start_id = start_id
        self._look = look
        self._report = report
        self._secs = secs
        self._over = False
        self._wake = Wake()
        self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)

    def __enter__(self) -> LiveWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._wake.set()
        self._thread.join()
        self._wake.close()

    def _run(self) -> None:
        known: Status | None = None
        process: subprocess.Popen[bytes] | None = None
        #: Of the process; None if it is not known, or has ended.
        end: int | None = None
        looks = 1
        if reason := client.no_socket(self._start_id):
            self._tell(f"{client.NOT_STARTED}: {reason}")
        while True:
            if end is not None and self._wake.wait(self._secs * looks) and not self._over:
                end = self._watched(end, None)
            if end is None:
                self._wake.wait(self._secs)
            if self._over:
                break
            found = self._look()
            if known is not None and (found is None or found.pid != known.pid) and not self._over:
                self._tell(_sentence(known.pid, process))
            if found is None or known is None or found.pid != known.pid:
                end = self._watched(end, found)
                # Now, as another one may be started at once when this one ends.
                process = None if found is None else self._started(found.pid)
            idle = found is not None and found.live and known is not None and found.spent.rounds == known.spent.rounds
            looks = _IDLE_LOOKS if idle else 1
            known = found
        self._watched(end, None)

    def _watched(self, before: int | None, found: Status | None) -> int | None:
        """Lets the end of a process end this thread's waits, in place of that of the one before."""
        end = None if found is None else descriptor_of(found.pid)
        self._wake.watch(end)
        if before is not None:
            os.close(before)
        return end

    def _tell(self, sentence: str) -> None:
        self._report([Failure(SYSTEM_COMPONENT, SYSTEM_TASK, sentence, fatal=False)])

    def _started(self, pid: int) -> subprocess.Popen[bytes] | None:
        """Returns the process with this id if the driver has started it, and no worker."""
        _, process = client.started.get(self._start_id, (0.0, None))
        return process if process is not None and process.pid == pid else None


def _sentence(pid: int, process: subprocess.Popen[bytes] | None) -> str:
    how = ""
    if process is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # It stops listening a moment before it has ended.
            how = f" ({in_words(process.wait(_END_SECS))})"
    return (
        f"the live process {pid} ended unexpectedly{how}; the next micro-batch executes again what it has executed "
        "since the last one, and then another live process takes over"
    )
