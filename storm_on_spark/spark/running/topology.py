"""A running topology: Spark's streaming query, and what belongs to it."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from storm_on_spark.api.errors import SetupError, TopologyFailedError
from storm_on_spark.api.info import LoadInfo, TopologyInfo, TopologyStatus
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.text.traces import own_part
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.processes.announced import Announced
from storm_on_spark.runtime.processes.diagnostics.usage import usage
from storm_on_spark.runtime.reports.batch_times import BatchTimes
from storm_on_spark.runtime.reports.growth import Growth
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.spark.checkpoint.owner import Fence
from storm_on_spark.spark.running.failures import LATE_REMEDY, is_late_process, reason_of, topology_failed
from storm_on_spark.spark.running.interrupts import interruptible
from storm_on_spark.spark.session.interrupts import InterruptsWait

_WATCH_SECONDS = 0.1
"""How often the fence is looked at, and a query stopped that does not end."""
_MOST_BATCHES: Final = 40
"""Of which the time is kept."""
_ATTEMPTS: Final = 6
"""At starting Spark's query, where a Python process of it is not ready in time."""

log = logging.getLogger(__name__)


class TopologyQuery(StreamingQuery):
    """A topology that runs as a streaming query.

    It is what `pyspark` returns for a query, so notebooks and tools treat it as one, plus what Storm knows of a
    topology. A finite topology ends by itself when all spouts are exhausted and nothing is pending.

    Don't make one yourself; `CompiledTopology.start` returns it.
    """

    def __init__(
        self,
        query: StreamingQuery,
        name: str,
        started: float,
        message_timeout_secs: float,
        coordinator: Coordinator,
        notes: Callable[[], list[str]],
        release: contextlib.ExitStack,
        fence: Fence | None = None,
        advice: Mapping[str, str] | None = None,
        again: Callable[[], StreamingQuery] | None = None,
    ) -> None:
        super().__init__(query._jsq)  # noqa: SLF001 # what a StreamingQuery is made of
        self._topology = name
        self.message_timeout_secs = message_timeout_secs
        #: The last micro-batch before this start; None for a topology that begins.
        self.resumed_batch: int | None = None
        #: What runs; None until it does.
        self.plan: PlacedPlan | None = None
        self.spark: SparkSession | None = None
        self._coordinator = coordinator
        self._growth = Growth()
        #: What workers wrote down before they ended; the best reason for a failure there is.
        self._notes = notes
        self._release = release
        self._fence = fence
        #: What spouts on Spark's own sources say of errors of those.
        self._advice = advice
        #: Starts Spark's query once more; None once it has ended for good.
        self._again = again
        self._started = started
        self._ended: float | None = None
        self._failure: TopologyFailedError | None = None
        self._status: TopologyStatus | None = None
        self._log_failure = False
        self._lock = threading.Lock()
        self._done = Announced()
        #: Set whenever there may be a reason to stop Spark's query.
        self._due = threading.Event()
        #: Set when Spark's query has ended.
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name=f"topology-{name}", daemon=True)
        self._ender = threading.Thread(target=self._end_when_due, name=f"topology-{name}-end", daemon=True)

    def at_end(self, action: Callable[[], None]) -> None:
        """Adds what is to be done, before anything else, when the topology ends."""
        self._release.callback(action)

    def when_ended(self, tell: Callable[[], object]) -> None:
        """Calls `tell` when the topology has ended and nothing of it is left running; at once if it has."""
        self._done.tell(tell)

    def log_failure(self) -> None:
        """Logs in one line why the topology failed, as soon as it has: perhaps nobody waits for its end."""
        with self._lock:
            self._log_failure = True
            if self._status == "FAILED":
                self._say_failure()

    def _say_failure(self) -> None:
        log.error("%s", str(self._failure).partition("\n")[0])

    def watch(self) -> None:
        """Begins to watch the query; called once, by the code that started it."""
        self._coordinator.completed.tell(self._due.set)
        self._ender.start()
        self._watcher.start()

    # --- Storm's side ---------------------------------------------------------------

    def status_info(self, windows: Iterable[str] = ()) -> TopologyInfo:
        """Returns status and counters as of now.

        Args:
            windows: those of `WINDOWS` that it is to have; with any, it has the `load`, too.
        """
        status = self._status or ("ACTIVE" if self._coordinator.active else "INACTIVE")
        uptime = (self._ended or time.monotonic()) - self._started
        info = self._coordinator.metrics.info(self._topology, status, uptime, self._failure)
        if windows := tuple(windows):
            counted = self._coordinator.metrics.recorder.info(windows)
            info = dataclasses.replace(info, windows=counted, load=self._load())
        if self._ended:
            return info
        at_hand = self._coordinator.at_hand
        return dataclasses.replace(
            info,
            micro_batch=at_hand.info(),
            at_work=self._coordinator.at_work(),
            mode=self._coordinator.mode,
            repetition=at_hand.repetition(),
        )

    def _load(self) -> LoadInfo:
        """Returns where the work waits, and what the topology takes."""
        reports = [] if self._ended else [dict(report) for report in self.recentProgress]
        stores = reports[-1]["stateOperators"] if reports else ()
        backlog, state_bytes = self._coordinator.backlog(), sum(store["memoryUsedBytes"] for store in stores)
        times = BatchTimes.of(reports)
        # Before the first micro-batch the size of state is not known.
        growth = self._growth.look(time.monotonic(), backlog, state_bytes) if reports else None
        return LoadInfo(
            pending=self._coordinator.metrics.pending(),
            backlog=backlog,
            batch_ms=times.medians(),
            batches=times.batches[-_MOST_BATCHES:],
            rounds=self._coordinator.round_times.last(),
            state_rows=sum(store["numRowsTotal"] for store in stores),
            state_bytes=state_bytes,
            worker=usage(),
            growth=growth,
        )

    def _repr_html_(self) -> str:
        return self.status_info()._repr_html_()  # what notebooks call

    def live(self, seconds: float | None = None) -> TopologyInfo:
        """Shows the topology in a notebook's cell, redrawn while it runs: a table, and a chart of acks a second.

        Interrupting the cell stops the topology, and nothing of it is left running.

        Args:
            seconds: how long to look; until the topology ends for None. It continues afterwards.

        Returns:
            Status and counters at the end.
        """
        from storm_on_spark.spark.running.notebook_cell import show_live

        return show_live(self, seconds)

    def batch_times(self) -> BatchTimes:
        """Returns where the time of the last micro-batches went; a notebook shows it as a picture."""
        return BatchTimes.of([dict(report) for report in self.recentProgress])

    def activate(self) -> None:
        """Lets the spouts emit again."""
        self._coordinator.set_active(True)

    def deactivate(self) -> None:
        """Stops the spouts from emitting; what is under way continues."""
        self._coordinator.set_active(False)

    @property
    def samples(self) -> SampleBook:
        """Samples of its tuples: what is sampled, and what was; `set("count", 5.0)` samples 5 % of a component's."""
        return self._coordinator.samples

    def drain(self, timeout: float | None = None) -> bool:
        """Deactivates the spouts and waits until everything that they emitted is acked or failed.

        Args:
            timeout: the longest wait in seconds; None for no limit.

        Returns:
            Whether nothing is left under way.
        """
        self.deactivate()
        return self.wait_until(self._coordinator.drained, timeout)

    def settled(self) -> int | None:
        """Returns how many tuples the spouts have emitted, active or not.

        Returns:
            The number since the start; None while something that follows from them is not yet processed, acked and
            committed.
        """
        return self._coordinator.settled()

    def wait_until(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Waits until `condition` holds or the topology has ended; returns whether it holds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not condition():
            if self._done.is_set() or (deadline is not None and time.monotonic() > deadline):
                return condition()
            self._done.wait(0.05)
        return True

    @property
    def failure(self) -> TopologyFailedError | None:
        """Why the topology failed; None if it did not."""
        return self._failure

    def fail(self, failure: Failure) -> None:
        """Ends the topology as failed; the first reason counts. Any thread may call it.

        Where another driver owns the checkpoint now, that is the reason, whatever went wrong because of it.
        """
        if self._fence is not None and (replaced := self._fence.lost()) is not None:
            failure = Failure("", None, replaced)
        with self._lock:
            if self._failure is None and self._status is None:
                self._failure = topology_failed(self._topology, failure)
        self._due.set()

    def stream(self, component: str, stream: str = DEFAULT_STREAM) -> DataFrame:
        """Returns a stream of the topology as a streaming DataFrame, for another query on the same session.

        A bolt that can be read must subscribe to it, and to nothing else: `StreamBolt` of
        `storm_on_spark.connectors.pipeline`.

        Args:
            component: whose stream it is.
            stream: its id.

        Raises:
            SetupError: no such bolt subscribes to the stream.
        """
        assert self.plan is not None
        components = self.plan.topology.components
        for spec in components.values():
            sources = [(source.component, source.stream) for source, _ in spec.inputs]
            if sources == [(component, stream)] and hasattr(spec.component, "read_stream"):
                frame: DataFrame = spec.component.read_stream(self.spark)
                return frame
        raise SetupError(
            f'no bolt that can be read subscribes to stream "{stream}" of "{component}" alone: '
            'add one, as in set_bolt("out", StreamBolt(FOLDER)).shuffle_grouping(...)'
            + ("" if component in components else f'; there is no component "{component}"')
        )

    # --- Spark's side ---------------------------------------------------------------

    def stop(self) -> None:
        """Ends the topology at once, and returns when nothing of it is left running.

        Raises:
            KeyboardInterrupt: an interrupt has come; the topology has ended all the same.
        """
        with self._lock:
            if self._status is None and self._failure is None:
                self._status = "KILLED"
        self._due.set()
        with InterruptsWait() as interrupts:
            if not self._done.is_set():
                self._stop_query()
            if threading.current_thread() is not self._watcher:
                self._done.wait()
        interrupts.check()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Waits for the end of the topology, as `StreamingQuery.awaitTermination`.

        Args:
            timeout: the longest wait in seconds; None for no limit.

        Returns:
            Whether the topology has ended; None without `timeout`.

        Raises:
            TopologyFailedError: it ended with an error.
        """
        with interruptible():
            ended = self._done.wait(timeout)
        if ended and self._failure is not None:
            raise self._failure
        return None if timeout is None else ended

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether the topology has not ended yet."""
        return not self._done.is_set()

    def exception(self) -> Any:
        """Returns the error that the topology ended with, or None."""
        return self._failure

    def _stop_query(self) -> None:
        self._coordinator.let_go()
        with contextlib.suppress(Exception):
            # A query that fails while it stops has said why; what counts is that it ends.
            super().stop()

    def _end_when_due(self) -> None:
        """Stops the query when there is a reason to."""
        while True:
            self._due.clear()  # before the reasons are looked at
            if self._over.is_set():
                return
            if self._coordinator.completed.is_set():
                with self._lock:
                    if self._failure is None and self._status is None:
                        self._status = "COMPLETED"
            elif self._fence is not None and (reason := self._fence.lost()) is not None:
                self.fail(Failure("", None, reason))
            if self._status is not None or self._failure is not None:
                self._stop_query()
                self._over.wait(_WATCH_SECONDS)
            else:
                self._due.wait(None if self._fence is None else _WATCH_SECONDS)

    def _watch(self) -> None:
        """Waits for the end of the query, for any reason, and cleans up."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                # Without a limit, as each question keeps two processes busy.
                super().awaitTermination()
            except StreamingQueryException as error:
                trace = _trace(error)
                if is_late_process(trace) and self._tried_again(attempts_left):
                    continue
                self.fail(Failure("", None, (self._notes() or [self._reason(trace)])[-1], trace, True, own_part(trace)))
            except Exception as error:  # the JVM is gone
                self.fail(Failure("", None, f"Spark is gone: {type(error).__name__}", str(error)))
            break
        self._again = None
        self._over.set()
        self._due.set()
        self._ender.join()
        with self._lock:
            if self._failure is not None:
                self._status = "FAILED"
                if self._log_failure:
                    self._say_failure()
            elif self._status is None:
                self._status = "KILLED"
        self._ended = time.monotonic()
        try:
            self._release.close()
        finally:
            self._done.set()

    def _tried_again(self, attempts_left: int) -> bool:
        """Starts Spark's query again, which no micro-batch of it has prevented; returns whether it runs."""
        with self._lock:
            ends = self._status is not None or self._failure is not None
        if self._again is None or ends or not attempts_left:
            return False
        log.warning(
            "a Python process that Spark needs was not ready within 10 s, so the start is tried again (%d times more "
            "at most); if that comes often, %s",
            attempts_left,
            LATE_REMEDY,
        )
        try:
            super().__init__(self._again()._jsq)  # noqa: SLF001 # what a StreamingQuery is made of
        except Exception:  # Spark is gone, or is about to be
            log.debug("the query can't be started again", exc_info=True)
            return False
        return True

    def _reason(self, trace: str) -> str:
        """Returns why the query failed, as one line."""
        return f"the Spark query failed: {reason_of(trace, self._advice)}"


def _trace(error: StreamingQueryException) -> str:
    # PySpark shows it only where the session asks for it.
    return getattr(error, "_stackTrace", None) or str(error)
