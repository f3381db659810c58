"""A thread of the driver that looks at the live process for as long as the topology runs."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterable
from typing import Final

from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, SYSTEM_TASK
from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.live import client
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.spouts.watching.holding import in_words

LOOK_SECS: Final = 1.0
"""How often the process is looked at."""
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
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)

    def __enter__(self) -> LiveWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        known: int | None = None
        if reason := client.no_socket(self._start_id):
            self._tell(f"{client.NOT_STARTED}: {reason}")
        while not self._over.wait(self._secs):
            status = self._look()
            found = None if status is None else status.pid
            if known is not None and found != known and not self._over.is_set():
                self._tell(self._sentence(known))
            known = found

    def _tell(self, sentence: str) -> None:
        self._report([Failure(SYSTEM_COMPONENT, SYSTEM_TASK, sentence, fatal=False)])

    def _sentence(self, pid: int) -> str:
        _, process = client.started.get(self._start_id, (0.0, None))
        how = ""
        if process is not None and process.pid == pid:  # a worker may have started it
            with contextlib.suppress(subprocess.TimeoutExpired):
                # It stops listening a moment before it has ended.
                how = f" ({in_words(process.wait(_END_SECS))})"
        return (
            f"the live process {pid} ended unexpectedly{how}; the next micro-batch executes again what it has executed "
            "since the last one, and then another live process takes over"
        )
