"""The coordinator: decides how far the next micro-batch reaches, and tells spouts what became of their tuples.

It lives in the driver's Python process, between the spout hosts on one side and Spark on the other: Spark's streaming
source asks it for the next offset (`poll`), the sink hands it the outcomes of a batch (`deliver`). Spouts hear of these
when the batch is committed: if Spark has to run it again after a crash, its outcomes may be others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from storm_on_spark.api.errors import CheckpointError, ComponentError
from storm_on_spark.plan.model import PhysicalPlan
from storm_on_spark.plan.words import listed
from storm_on_spark.runtime.acker import Outcome
from storm_on_spark.runtime.batch_files import BatchFiles
from storm_on_spark.runtime.batch_size import BatchSize
from storm_on_spark.runtime.clock import Clock
from storm_on_spark.runtime.host_process import HostProcess, RestartPolicy, spread_executors
from storm_on_spark.runtime.ids import spout_task_of
from storm_on_spark.runtime.messages import (
    Consumed,
    Failed,
    Idle,
    Message,
    Progress,
    Ready,
    SetActive,
    SetClock,
    Settle,
    Setup,
    Want,
)
from storm_on_spark.runtime.metrics import Metrics
from storm_on_spark.runtime.offsets import Offset
from storm_on_spark.runtime.outcomes import merged, read_outcome
from storm_on_spark.runtime.report import Failure
from storm_on_spark.runtime.spec import RunSpec
from storm_on_spark.runtime.spout_log import iter_cuts
from storm_on_spark.runtime.spout_progress import SpoutProgress
from storm_on_spark.runtime.wiring import Wiring

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""How long `poll` waits for news before it answers that there are none."""
_MOST_POLL_SECONDS = 1.6
"""The same after some polls in a row without news; who stops Spark's query without `let_go` waits so long."""
_ANSWER_SECONDS = 0.005
"""How long spouts have to cut when there is something to do already."""
_OPEN_SECONDS = 120.0
"""How long a spout may take to open when the topology starts."""


class Coordinator:
    """Runs the spouts of one topology.

    Args:
        spec: the run.
        folder: the topology's own folder in the checkpoint.
        clock: the topology's clock; started by `start`.
        active: whether spouts start out active.
        on_failure: called once, on any thread, with the reason when a spout or host fails for good.
    """

    def __init__(
        self, spec: RunSpec, folder: Path, clock: Clock, active: bool, on_failure: Callable[[str, str], None]
    ) -> None:
        self._spec = spec
        self._plan: PhysicalPlan = spec.plan
        self._folder = folder
        self._clock = clock
        self.active = active
        self._on_failure = on_failure
        self._wiring = Wiring(spec.plan)
        self._outcomes = BatchFiles(folder / "outcomes")
        self._carried = BatchFiles(folder / "carried")
        self._hosts: list[HostProcess] = []
        self._changed = threading.Condition()
        self._tasks = {task: SpoutProgress() for executor in self._executors() for task in executor}
        self._policies: dict[HostProcess, RestartPolicy] = {}
        #: Held while spouts are told of outcomes: a task hears of batches in their order, also after a restart.
        self._telling = threading.Lock()
        #: Batch -> outcomes that spouts hear of once it is committed.
        self._delivered: dict[int, list[Outcome]] = {}
        #: Batch -> tasks that may still need to be told of its outcome after a crash.
        self._unsaved: dict[int, set[int]] = {}
        self._carried_head = max(self._carried.batches(), default=-1)
        self._stopped = False
        self._let_go = False
        #: Polls without news since the last one with news.
        self._quiet_polls = 0
        self._completed = threading.Event()
        self.metrics = Metrics(spec.plan)
        conf = spec.plan.conf
        self._size = BatchSize(int(conf["topology.batch.max.tuples"]), float(conf["topology.batch.max.secs"]))  # type: ignore[call-overload,arg-type]
        self._interval: float = float(conf["topology.batch.min.interval.ms"]) / 1000  # type: ignore[arg-type]
        #: When the last micro-batch was planned.
        self._batch_at = -self._interval
        self._timeout_ms: int = 1000 * int(conf["topology.message.timeout.secs"])  # type: ignore[call-overload]
        self._timeouts = bool(conf["topology.enable.message.timeouts"])
        self._tick_ms = set(self._wiring.tick_periods().values())
        #: The last offset that was in Spark's log at the start.
        self._planned = Offset()
        #: Why the topology can't go on from this checkpoint.
        self._refusal: CheckpointError | None = None

    # --- life ---------------------------------------------------------------

    def start(self, planned: Offset) -> None:
        """Starts the spout hosts and waits until every spout is open; `launch` and `wait_until_open` in one."""
        self.launch(planned)
        self.wait_until_open()

    def launch(self, planned: Offset) -> None:
        """Starts the spout hosts, which open their spouts while the caller goes on.

        Args:
            planned: the last offset that Spark has in its log; the topology's time goes on from there.
        """
        self._clock.start(planned.clock)
        self._planned = planned
        self._delivered = {batch: self._read(batch) for batch in self._outcomes.batches()}
        workers = int(self._plan.conf.get("topology.workers") or 1)  # type: ignore[call-overload]
        spec = self._spec.dumps()

        def setup(executors: tuple[tuple[int, ...], ...]) -> Setup:
            started_at = self._clock.started_at
            clock_ms = self._clock.now_ms() if started_at is None else planned.clock
            consumed = {
                number: max(planned.logs.get(number, 0), self._tasks[number].committed)
                for executor in executors
                for number in executor
            }
            return Setup(spec, executors, str(self._folder / "spouts"), consumed, self.active, clock_ms, started_at)

        for group in spread_executors(self._executors(), workers):
            numbers = [number for executor in group for number in executor]
            host = HostProcess(numbers, partial(setup, group), self._on_message, self._on_gone)
            self._hosts.append(host)
            self._policies[host] = RestartPolicy()
            for number in numbers:
                self._tasks[number].host = host
        for host in self._hosts:
            host.start()

    def wait_until_open(self) -> None:
        """Waits until every spout is open, or the topology has failed.

        Raises:
            CheckpointError: the spout logs end before what Spark has planned, or something can't be read.
            ComponentError: a spout did not open in time.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or self._refusal or all(task.ready for task in self._tasks.values()),
                _OPEN_SECONDS,
            )
            if self._refusal is not None:
                raise self._refusal
            if self._stopped:
                return
            for number, task in self._tasks.items():
                if not task.ready:
                    component = self._wiring.component_of[number]
                    raise ComponentError(component, number, "open", f"it did not return within {_OPEN_SECONDS:.0f} s")

    def stop(self) -> None:
        """Ends the spout hosts; returns when they are gone."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for host in self._hosts:
            host.stop()

    def let_go(self) -> None:
        """Ends a poll that waits, and every further one at once: the query is about to stop."""
        with self._changed:
            self._let_go = True
            self._changed.notify_all()

    def set_active(self, active: bool) -> None:
        """Activates or deactivates the spouts; what they are already is not asked for anew."""
        with self._changed:
            if self.active == active:
                return
            self.active = active
            for task in self._tasks.values():
                task.quiet = False
        self._broadcast(SetActive(active))
        if not active:
            self._broadcast(Want())  # who waits until all is done needs not wait for the next poll

    def _executors(self) -> list[tuple[int, ...]]:
        """Returns the tasks of every spout executor: Storm spreads tasks over executors in order."""
        executors: list[tuple[int, ...]] = []
        for component in self._plan.components.values():
            if self._plan.topology[component.id].is_spout:
                count = max(1, min(component.executors, len(component.tasks)))
                executors += [tuple(part.tolist()) for part in np.array_split(np.array(component.tasks), count)]
        return executors

    # --- for the streaming source ---------------------------------------------------------------

    def poll(self, start: Offset) -> Offset:
        """Returns how far the next micro-batch reaches; `start` itself when there is nothing to do for some time.

        Spark asks when the batch that ended at `start` is committed; after a restart not before a batch that was
        planned but not committed has run again.
        """
        self._size.ended()
        with self._writing_checkpoint():
            self._commit(start)
        deadline = time.monotonic() + min(_MOST_POLL_SECONDS, POLL_SECONDS * 2**self._quiet_polls)
        with self._changed:
            for task in self._tasks.values():
                task.answered = task.idle = False
        self._broadcast(Want(self._size.for_each(len(self._tasks))))
        with self._changed:
            patience = 0.0
            while not self._stopped and not self._let_go:
                now = time.monotonic()
                if self._is_due(start):
                    self._quiet_polls = 0
                    # Something to do: give every spout a moment to add what it has.
                    patience = patience or min(deadline, now + _ANSWER_SECONDS)
                    answered = now >= patience or all(task.answered for task in self._tasks.values())
                    if self._is_full() or (answered and now >= self._batch_at + self._interval):
                        self._batch_at = now
                        return self._cover(start)
                    patience = max(patience, self._batch_at + self._interval)
                    self._changed.wait(patience - now)
                else:
                    self._notice_completion(start)
                    if now >= deadline:
                        self._quiet_polls = min(self._quiet_polls + 1, 8)
                        return start
                    self._changed.wait(min(deadline - now, self._until_time_is_due()))
        return start

    def _is_due(self, start: Offset) -> bool:
        if any(task.waiting() for task in self._tasks.values()) or self._carried_head > start.carried:
            return True
        now = self._clock.now_ms()
        return any(now // period > start.clock // period for period in self._periods())

    def _periods(self) -> set[int]:
        """Returns the periods in ms whose end is a reason for a micro-batch: ticks, and trees that may time out."""
        if self._timeouts and any(task.pending for task in self._tasks.values()):
            return self._tick_ms | {self._timeout_ms}
        return self._tick_ms

    def _until_time_is_due(self) -> float:
        """Returns in how many seconds the first of these periods ends."""
        if self._clock.started_at is None:
            return 0.01  # a clock that is driven by hand tells nobody when it moves
        now = self._clock.now_ms()
        return min((period - now % period for period in self._periods()), default=60_000) / 1000

    def _is_full(self) -> bool:
        return sum(task.waiting() for task in self._tasks.values()) >= self._size.limit

    def _cover(self, start: Offset) -> Offset:
        logs = dict(start.logs)
        share, total = self._size.share(sum(task.waiting() > 0 for task in self._tasks.values())), 0
        for number, task in self._tasks.items():
            taken = 0
            while task.cuts and (taken == 0 or taken + task.cuts[0][1] <= share):
                end, tuples = task.cuts.popleft()
                taken += tuples
                logs[number] = end
            total += taken
        self._size.began(total)
        return Offset(logs, max(start.clock, self._clock.now_ms()), max(start.carried, self._carried_head))

    def _commit(self, offset: Offset) -> None:
        delivered, self._delivered = self._delivered, {}
        for batch, outcomes in sorted(delivered.items()):
            self._tell(batch, outcomes)
        for number, task in self._tasks.items():
            position = offset.logs.get(number, 0)
            if position > task.committed:
                task.committed = position
                if task.host is not None:
                    task.host.send(Consumed(number, position))
        for batch in self._carried.batches():
            if batch <= offset.carried:
                self._carried.delete(batch)
        if self._clock.started_at is None:
            self._broadcast(SetClock(self._clock.now_ms()))

    def _notice_completion(self, start: Offset) -> None:
        """Finds out whether a finite topology is done: called with all that was planned committed."""
        if self.active and all(
            task.idle and task.exhausted and not task.pending and task.tuples_end <= start.logs.get(number, 0)
            for number, task in self._tasks.items()
        ):
            self._completed.set()

    @property
    def completed(self) -> threading.Event:
        """Set when all spouts are exhausted and nothing is pending or under way."""
        return self._completed

    def pending(self) -> int:
        """Returns how many messages are neither acked nor failed, as of the spouts' last word."""
        return sum(task.pending for task in self._tasks.values())

    def drained(self) -> bool:
        """Returns whether the spouts are inactive and all that they emitted has been processed and committed."""
        with self._changed:
            return (
                all(
                    task.ready and task.quiet and not task.pending and task.tuples_end <= task.committed
                    for task in self._tasks.values()
                )
                and not self._carried.batches()
            )

    # --- for the sink ---------------------------------------------------------------

    def deliver(self, batch: int, outcomes: Sequence[bytes], carried: Sequence[bytes]) -> None:
        """Keeps what a micro-batch left behind, for when it is committed.

        Args:
            batch: Spark's number of the batch. It may come again after a crash.
            outcomes: OUTCOME chunks.
            carried: chunks of back edges.

        Raises:
            OSError: the checkpoint can't be written.
        """
        self._carried.write(batch, carried)
        if carried:
            self._carried_head = max(self._carried_head, batch)
        self._outcomes.write(batch, outcomes)
        self._delivered.pop(batch, None)
        if outcomes:
            self._delivered[batch] = [read_outcome(body) for body in outcomes]

    def _tell(self, batch: int, outcomes: Sequence[Outcome]) -> None:
        roots, codes = merged(outcomes)
        owners = spout_task_of(roots)
        told = [int(owner) for owner in np.unique(owners) if owner in self._tasks]
        if not told:
            # Their spout is no longer part of the topology.
            self._outcomes.delete(batch)
            return
        with self._telling:
            with self._changed:
                self._unsaved[batch] = set(told)
            for owner in told:
                task = self._tasks[owner]
                # A task that is being opened again is told by `_catch_up`.
                if task.host is not None and task.ready:
                    mine = owners == owner
                    task.host.send(Settle(owner, batch, roots[mine], codes[mine]))

    def _catch_up(self, message: Ready) -> None:
        """Tells a task that was opened again of all that may not be in its snapshot; what is there, it ignores."""
        number, task = message.task, self._tasks[message.task]
        assert task.host is not None
        with self._telling:
            with self._changed:
                batches = sorted(batch for batch, tasks in self._unsaved.items() if number in tasks)
            for batch in batches:
                roots, codes = merged(self._read(batch))
                mine = spout_task_of(roots) == number
                task.host.send(Settle(number, batch, roots[mine], codes[mine]))
            task.host.send(Consumed(number, task.committed))
            if task.host.active != self.active:
                task.host.send(SetActive(self.active))
            # What it cut before it died, without being able to say so.
            self._take_over(message, task.head)

    def _take_over(self, message: Ready, start: int) -> None:
        """Takes in what a task that is open has in its log behind `start`."""
        log = self._folder / "spouts" / str(message.task)
        cuts = [(cut.end, cut.tuples) for cut in iter_cuts(log, start, message.position)]
        task = self._tasks[message.task]
        with self._changed:
            for end, tuples in cuts:
                task.add_cut(end, tuples)
            task.head, task.ready = message.position, True

    def _read(self, batch: int) -> list[Outcome]:
        return [read_outcome(body) for body in self._outcomes.read(batch)]

    # --- from the hosts ---------------------------------------------------------------

    def _on_message(self, message: Message) -> None:
        with self._writing_checkpoint():
            self._take_in(message)

    def _take_in(self, message: Message) -> None:
        if isinstance(message, Failed):
            self._give_up(message.message, message.trace)
            return
        if isinstance(message, Ready):
            self._on_ready(message)
        saved: list[int] = []
        with self._changed:
            if isinstance(message, Idle):
                task = self._tasks[message.task]
                task.answered, task.idle, task.quiet = True, True, not message.active
            elif isinstance(message, Progress):
                task = self._tasks[message.task]
                task.exhausted, task.pending = message.stats.exhausted, message.stats.pending
                if message.cut:
                    task.add_cut(message.position, message.tuples)
                    if message.tuples:
                        task.answered = True
                        task.idle = task.quiet = False
                saved = self._saved(message.task, message.saved_batch)
                self.metrics.add_spout(message)
            self._changed.notify_all()
        for batch in saved:
            self._outcomes.delete(batch)

    def _on_ready(self, message: Ready) -> None:
        number, opened = message.task, self._tasks[message.task].opened
        known = self._tasks[number].head if opened else self._planned.logs.get(number, 0)
        try:
            if message.position < known:
                raise CheckpointError(
                    f"the log of spout task {number} ends at position {message.position}, but it was written up to "
                    f"position {known}: part of the checkpoint is missing"
                )
            if opened:
                self._catch_up(message)
            else:
                self._tasks[number].tuples_end = known
                self._tasks[number].opened = True
                self._take_over(message, known)
        except CheckpointError as error:
            if opened:
                self._give_up(str(error))
            self._refusal = error

    def _saved(self, task: int, saved_batch: int) -> list[int]:
        """Returns the batches that no spout needs to be told of again."""
        done = []
        for batch, tasks in list(self._unsaved.items()):
            if batch <= saved_batch:
                tasks.discard(task)
            if not tasks:
                del self._unsaved[batch]
                done.append(batch)
        return done

    def _on_gone(self, host: HostProcess, status: str) -> float | None:
        """Says after which pause a host that died is started again; None if the topology ends."""
        spouts = listed(sorted({self._wiring.component_of[task] for task in host.tasks}))
        with self._changed:
            if self._stopped:
                return None
            for task in host.tasks:
                state = self._tasks[task]
                state.ready = state.idle = state.quiet = state.exhausted = False
        policy = self._policies[host]
        opened = all(self._tasks[task].opened for task in host.tasks)
        pause = policy.next_pause(host.ran_secs) if opened else None
        reason = f"the process {host.pid} of spout {spouts} ended unexpectedly ({status})"
        if pause is None:
            times = f", after {policy.restarts} restarts in a row" if policy.restarts else " while it was opened"
            self._give_up(f"{reason}{times}; look for what ends it: memory, or a crash in native code")
            return None
        log.warning("%s; it is started again", reason)
        for task in host.tasks:
            self.metrics.spout_gone(task)
            self.metrics.add_failure(
                Failure(self._wiring.component_of[task], task, f"{reason}; it is started again", "", False)
            )
        return pause

    def _give_up(self, reason: str, trace: str = "") -> None:
        self._on_failure(reason, trace)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @contextmanager
    def _writing_checkpoint(self) -> Iterator[None]:
        """Ends the topology when the checkpoint can't be written: neither Spark nor a host's thread would say so."""
        try:
            yield
        except OSError as error:
            self._give_up(f"the checkpoint can't be written: {error}")

    def _broadcast(self, message: Message) -> None:
        for host in self._hosts:
            host.send(message)
