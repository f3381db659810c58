"""The coordinator: does what the rules of micro-batches say, with spout hosts on one side and Spark on the other.

It lives in the driver's Python process. Spark's streaming source asks it for the next offset (`poll`). The sink hands
it the outcomes of a batch (`deliver`). Spouts hear of these when the batch is committed: if Spark has to run it again
after a crash, its outcomes may be others.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from storm_on_spark.api.errors import CheckpointError, ComponentError
from storm_on_spark.api.info import ComponentAtWork
from storm_on_spark.api.streams.constants import ACKER_COMPONENT, SYSTEM_COMPONENT, SYSTEM_TASK
from storm_on_spark.plan.explain.words import listed
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.plan.settings import LiveSettings
from storm_on_spark.runtime.batches.clock import Clock
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.batches.live_process import LiveProcess, Status
from storm_on_spark.runtime.batches.metrics.counters import Metrics
from storm_on_spark.runtime.batches.metrics.current_batch import BatchAtHand
from storm_on_spark.runtime.batches.metrics.recorder import Recorder
from storm_on_spark.runtime.batches.metrics.round_times import RoundTimes
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.rules import events
from storm_on_spark.runtime.batches.rules.planning import BatchPace, BatchRules, beside_native
from storm_on_spark.runtime.batches.rules.reading import ReadingRules
from storm_on_spark.runtime.batches.rules.size import BatchSize
from storm_on_spark.runtime.batches.spout_outcomes import SpoutOutcomes
from storm_on_spark.runtime.processes.announced import Announced
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.run.settings import BatchSettings, SpoutSettings, TrackingSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.runtime.spouts import messages
from storm_on_spark.runtime.spouts.host_process import STOP_SECONDS, HostProcess, spout_groups
from storm_on_spark.runtime.spouts.log import WriterEpoch, iter_cuts, list_segments
from storm_on_spark.runtime.storage import Folder, as_storage, inside, name_of
from storm_on_spark.runtime.storage.claims import make_claim
from storm_on_spark.runtime.storage.durable import Durable

log = logging.getLogger(__name__)

_CHECKPOINTS_A_LOG = 4
"""Checkpoints for the bytes that may wait in a log, at least: a spout is held back when it is full."""
_OPEN_SECONDS = 120.0
"""How long a spout may take to open when the topology starts."""


class Coordinator:
    """Runs the spouts of one topology.

    Args:
        spec: the run.
        folder: the topology's own folder in the checkpoint.
        clock: the topology's clock; started by `start`.
        active: whether spouts start out active.
        on_failure: called once, on any thread, when a spout or host fails for good.
        durable: makes micro-batches survive the loss of the machine; None where that is not wanted, or happens anyway.
        make_host: makes what spouts run in; None for processes beside this one.
        live: the live process of the run, if there may be one.
        hold: called with the native spouts of which Spark may read nothing for now.
        recorder: counts over windows; None for windows that end with the process.
    """

    host_class: type[HostProcess] = HostProcess
    """What spouts run in unless `make_host` says otherwise."""
    pace = BatchPace()
    """Times of the rules."""

    def __init__(
        self,
        spec: RunSpec,
        folder: Folder,
        clock: Clock,
        active: bool,
        on_failure: Callable[[Failure], None],
        durable: Durable | None = None,
        make_host: Callable[..., HostProcess] | None = None,
        live: LiveProcess | None = None,
        hold: Callable[[frozenset[str]], None] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._make_host = make_host or self.host_class
        self._live, self._spec, self._hold, self._looking = live, spec, hold, threading.Lock()
        self._plan: PlacedPlan = spec.plan
        self.samples = SampleBook(folder)
        self._folder, self._clock, self._on_failure = folder, clock, on_failure
        self._durable = durable
        #: Micro-batches that ran here, of whose commit it isn't sure that it would survive.
        self._unsynced: list[int] = []
        self._wiring = Wiring(spec.plan)
        settings, tracking = BatchSettings.of(spec.plan.conf), TrackingSettings.of(spec.plan.conf)
        self._groups, self.round_times = spout_groups(spec.plan), RoundTimes()
        #: By task, how far it had read when it was opened; see `ReadsItself`.
        self.reached: dict[int, tuple[int, str | None] | None] = {}
        self._reading = ReadingRules(
            {
                spec.plan.components[native].tasks[0]: self._wiring.settings(SpoutSettings, native).max_pending
                for native in spec.plan.native_spouts
            }
        )
        hosts = [tuple(task for executor in group for task in executor) for group in self._groups]
        self._rules = BatchRules(
            hosts,
            BatchSize(settings.max_tuples, settings.max_secs),
            settings.min_interval_ms / 1000,
            tracking.timeout_ms if tracking.timeouts else None,
            self._wiring.periods,
            active=active,
            clock_runs=clock.started_at is not None,
            checkpoint_secs=LiveSettings.of(spec.plan.conf).checkpoint_ms / 1000,
            checkpoint_bytes=self._least_log_bytes() // _CHECKPOINTS_A_LOG,
            pace=beside_native(self.pace) if spec.read_by_spark else self.pace,
        )
        #: Held while the rules take a step, never while a message is sent: its receiver may be waiting for an answer.
        self._changed = threading.Condition()
        tasks = [task for host in hosts for task in host]
        self._carried = BatchFiles(inside(folder, "carried"))
        self._outcomes = SpoutOutcomes(BatchFiles(inside(folder, "outcomes")), tasks)
        self._hosts: list[HostProcess] = []
        self._host_of: dict[int, HostProcess] = {}
        #: Held while spouts are told of outcomes, so that a task is told of batches in order, also after a restart.
        self._telling = threading.Lock()
        #: Set when all spouts are exhausted and nothing is pending or under way.
        self.completed = Announced()
        self.metrics = Metrics(spec.plan, storm_id=spec.storm_id, port=spec.port, recorder=recorder)
        self.at_hand = BatchAtHand(folder, others=bool(spec.read_by_spark))
        #: Its number among all that ever ran on the checkpoint, and the numbers of the hosts that it starts.
        self._owner = 0
        self._starts = itertools.count(1)

    @property
    def active(self) -> bool:
        """Whether spouts are active."""
        return self._rules.active

    def _step(self, event: events.Event) -> list[events.Instruction]:
        with self._changed:
            instructions = self._rules.step(event, self._moment())
            self._changed.notify_all()
        return instructions

    def _moment(self) -> events.Moment:
        return events.Moment(time.monotonic(), self._clock.now_ms())

    # --- life ---------------------------------------------------------------

    def start(self, planned: Offset, committed: int | None = None, executed_ms: int | None = None) -> None:
        """Starts the spout hosts and waits until every spout is open; `launch` and `wait_until_open` in one."""
        self.launch(planned, committed, executed_ms)
        self.wait_until_open()

    def launch(self, planned: Offset, committed: int | None = None, executed_ms: int | None = None) -> None:
        """Starts the spout hosts, which open their spouts while the caller continues.

        Args:
            planned: the last offset that Spark has in its log.
            committed: the last micro-batch that Spark has committed: a later one runs again, and what it left behind
                is ignored. None if all did that left anything.
            executed_ms: the topology's time at which tuples were executed live last; None if none were after
                `planned`. Its time continues from there, so that the next micro-batch covers them.
        """
        begins_ms = max(planned.clock, executed_ms or 0)
        self._clock.start(begins_ms)
        if committed is not None:
            # Also, a micro-batch that is planned again must not take in the tuples that it carried itself before.
            self._carried.delete_after(committed)
        self._step(events.Started(planned, max(self._carried.batches(), default=-1), executed_ms is not None))
        self._outcomes.load(committed)
        self.samples.forget()
        spec = self._spec.dumps()
        known = [epoch.owner for epoch in planned.epochs.values()]
        writers = as_storage(inside(self._folder, "writers"), synced=True)
        claim, _ = make_claim(writers, uuid.uuid4().hex, {}, known=[*known, *self._writers()])
        self._owner = claim.number
        numbers = {name: component.tasks for name, component in self._plan.components.items()}
        self.metrics.recorder.open(
            self._owner,
            committed,
            {**numbers, ACKER_COMPONENT: self._plan.acker_tasks, SYSTEM_COMPONENT: [SYSTEM_TASK]},
        )

        def setup(executors: tuple[tuple[int, ...], ...]) -> messages.Setup:
            started_at = self._clock.started_at
            clock_ms = self._clock.now_ms() if started_at is None else begins_ms
            tasks = [task for executor in executors for task in executor]
            epoch = WriterEpoch(self._owner, next(self._starts))
            folder = name_of(inside(self._folder, "spouts"))
            with self._changed:
                heads = {task: self._rules.head(task) for task in tasks}
                consumed = {task: self._rules.consumed(task) for task in tasks}
                active = self.active
            return messages.Setup(
                spec, executors, folder, epoch, heads, consumed, active, clock_ms, started_at, str(claim)
            )

        for group in self._groups:
            tasks = [task for executor in group for task in executor]
            host = self._make_host(tasks, partial(setup, group), self._on_message, self._on_gone)
            self._hosts.append(host)
            self._host_of.update(dict.fromkeys(tasks, host))
        for host in self._hosts:
            host.start()

    def wait_until_open(self) -> None:
        """Waits until every spout is open, or the topology has failed.

        Raises:
            CheckpointError: the spout logs end before what Spark has planned, or something can't be read.
            ComponentError: a spout did not open in time.
        """
        with self._changed:
            rules = self._rules
            self._changed.wait_for(lambda: rules.stopped or rules.refusal or not rules.unopened(), _OPEN_SECONDS)
            if rules.refusal is not None:
                raise CheckpointError(rules.refusal)
            late = [] if rules.stopped else rules.unopened()
        if late:
            component = self._wiring.component_of[late[0]]
            raise ComponentError(component, late[0], "open", f"it did not return within {_OPEN_SECONDS:.0f} s")

    def has_opened(self, task: int | None) -> bool:
        """Returns whether a spout's task was open at least once; for None, whether all tasks were."""
        with self._changed:
            return self._rules.has_opened(task)

    def _writers(self) -> set[int]:
        """Returns the owners whose segments are in any log."""
        tasks = (task for group in self._groups for executor in group for task in executor)
        logs = (inside(self._folder, "spouts", str(task)) for task in tasks)
        return {segment.epoch.owner for log in logs for segment in list_segments(log)}

    def stop(self) -> None:
        """Ends the spout hosts; returns when they are gone."""
        self._step(events.Ended())
        for host in self._hosts:
            if host.stop():
                said = "the process of spout %s was ended: next_tuple or close had not returned after %g s"
                tasks = (f'"{self._wiring.component_of[task]}" (task {task})' for task in host.tasks)
                log.warning(said, listed(tasks), STOP_SECONDS)
        self.metrics.recorder.close()

    def let_go(self) -> None:
        """Ends a poll that waits, and every further one at once: the query is about to stop."""
        self._step(events.LetGo())
        if self._live is not None:
            self._live.let_go()

    def set_active(self, active: bool) -> None:
        """Activates or deactivates the spouts; does nothing if they already are."""
        self._do(self._step(events.Activated(active)))

    # --- for the streaming source ---------------------------------------------------------------

    def poll(self, start: Offset) -> Offset:
        """Returns how far the next micro-batch reaches; `start` itself when there is nothing to do for some time.

        Spark asks when the batch that ended at `start` is committed; after a restart not before a batch that was
        planned but not committed has run again.

        Raises:
            CheckpointError: another driver has planned micro-batches on this checkpoint.
        """
        with self._writing_checkpoint():
            self._do(self._step(events.Polled(start)))
        self._hold_sources()
        self.look_at_live()
        barrier: events.AskBarrier | None = None
        while True:
            event = events.Looked() if barrier is None else self._cut_state(barrier)
            barrier = None
            with self._changed:
                for instruction in self._rules.step(event, self._moment()):
                    if isinstance(instruction, events.Plan):
                        self.at_hand.planned()
                        return instruction.end
                    if isinstance(instruction, events.NothingNew):
                        self.at_hand.nothing_new()
                        return start
                    if isinstance(instruction, events.Complete):
                        self.completed.set()
                    elif isinstance(instruction, events.AskBarrier):
                        barrier = instruction
                    else:
                        assert isinstance(instruction, events.WaitForNews)
                        self._changed.wait(instruction.secs)

    def _least_log_bytes(self) -> int:
        components = {self._wiring.component_of[task] for group in self._groups for part in group for task in part}
        return min((self._wiring.settings(SpoutSettings, each).log_max_bytes for each in components), default=1 << 30)

    def _cut_state(self, barrier: events.AskBarrier) -> events.WasCut:
        assert self._live is not None, "nothing goes live without it"
        return events.WasCut(self._live.barrier(barrier.start, barrier.written))

    def look_at_live(self) -> Status | None:
        """Lets spouts know of the live process, and the rules whether tuples are executed there. Returns how it is."""
        if self._live is None:
            return None
        with self._looking:
            found = self._live.look(self._clock.now_ms(), time.monotonic())
            self.round_times.look(time.time(), found, self.metrics.spouts_secs, self.metrics.spout_totals().emitted)
            self._step(events.WentLive(found is not None and found.live))
        for host in self._hosts:
            if found is not None:
                host.send(messages.GoLive(str(self._live.path), found.pid))
        return found

    def _do(self, instructions: Iterable[events.Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, events.Tell):
                self._send(instruction)
            elif isinstance(instruction, events.TellOutcomes):
                self._tell_outcomes()
                self._do(self._step(events.Committed()))
            elif isinstance(instruction, events.DropCarried):
                for batch in self._carried.batches():
                    if batch <= instruction.batch:
                        self._carried.delete(batch)
            elif isinstance(instruction, events.GiveUp):
                self._give_up(instruction.reason)
            elif isinstance(instruction, events.ReadLog):
                self._read_log(instruction)
            else:
                assert isinstance(instruction, events.Refuse)
                raise CheckpointError(instruction.reason)

    def _send(self, tell: events.Tell) -> None:
        for host in self._hosts if tell.task is None else [self._host_of[tell.task]]:
            host.send(tell.message)

    def _tell_outcomes(self) -> None:
        if self._durable is not None:
            while self._unsynced:
                self._durable.committed(self._unsynced.pop())
        for batch, settles in self._outcomes.committed():
            with self._telling:
                self._outcomes.tell(batch, settles.keys())
                for task, settle in settles.items():
                    # A task that is being opened again is told by `_read_log`.
                    if self._rules.is_ready(task):
                        self._host_of[task].send(settle)

    def drained(self) -> bool:
        """Returns whether the spouts are inactive and all that they emitted has been processed and committed."""
        with self._changed:
            return self._rules.is_drained() and not self._carried.batches()

    def settled(self) -> int | None:
        """Returns how many tuples the spouts have emitted; None while something that follows from them is under way."""
        with self._changed:
            if not self._rules.is_settled() or self._carried.batches():
                self._step(events.Awaited())
                return None
            return self.metrics.spout_totals().emitted

    def backlog(self) -> dict[int, int]:
        """Returns by spout task how many tuples are in its log that no micro-batch has taken."""
        with self._changed:
            return self._rules.waiting()

    @property
    def mode(self) -> str:
        """How tuples are executed at the moment; see `TopologyInfo`."""
        return "real time" if self._rules.live else "micro-batches"

    def at_work(self) -> tuple[ComponentAtWork, ...]:
        """Returns how far bolts are that take long."""
        return self.at_hand.at_work(live=self._rules.live)

    # --- for the sink ---------------------------------------------------------------

    def deliver(self, batch: int, outcomes: Sequence[bytes], carried: Sequence[bytes]) -> None:
        """Keeps the results of a micro-batch until it is committed.

        Args:
            batch: Spark's number of the batch. It may come again after a crash.
            outcomes: OUTCOME chunks.
            carried: chunks of back edges.

        Raises:
            OSError: the checkpoint can't be written.
        """
        self._carried.write(batch, carried)
        if carried:
            self._step(events.Delivered(batch))
        self._outcomes.write(batch, outcomes)
        if self._durable is not None:
            # Before Spark commits: its word must never survive what it stands for.
            self._durable.force()
            self._unsynced.append(batch)
        left = self._outcomes.deliver(batch, outcomes)
        with self._changed:
            self._reading.left(batch, left)
        # Before Spark plans the next micro-batch: it asks all sources at once, and ours maybe last.
        self._hold_sources()

    def _hold_sources(self) -> None:
        """Holds the sources whose spouts keep too many rows, and lets the others read."""
        if self._hold is None:
            return
        with self._changed:
            tasks = self._reading.held(self._rules.active)
        self._hold(frozenset(self._wiring.component_of[task] for task in tasks))

    # --- from the hosts ---------------------------------------------------------------

    def _on_message(self, message: messages.Message) -> None:
        """Takes in what a spout host says, on the host's thread."""
        with self._writing_checkpoint():
            if isinstance(message, messages.Blocked):
                self.metrics.add_reports([message.failure])
                return
            assert isinstance(message, (messages.Ready, messages.Failed, messages.Progress, messages.Idle)), message
            if isinstance(message, messages.Failed):
                self.metrics.add_failure(message.failure)
            elif isinstance(message, messages.Ready):
                self.reached[message.task] = message.reached
            with self._changed:  # counters and rules change together; see `settled`
                if isinstance(message, messages.Progress):
                    self.metrics.add_spout(message)
                    self._reading.reported(
                        message.task, message.settled_batch, pending=message.stats.pending, again=message.again
                    )
                instructions = self._step(message)
            self._do(instructions)
            if isinstance(message, messages.Progress):
                self._outcomes.saved(message.task, message.saved_batch)

    def _read_log(self, read: events.ReadLog) -> None:
        if read.remind is None:
            self._do(self._step(self._log_read(read)))
            return
        # The task is told of no outcome between what it is reminded of and the moment in which it is ready.
        with self._telling:
            self._do(self._step(self._log_read(read)))

    def _log_read(self, read: events.ReadLog) -> events.LogRead | events.LogUnreadable:
        try:
            if read.remind is not None:
                self._remind(read.task, read.remind)
            log = inside(self._folder, "spouts", str(read.task))
            position, epoch = read.written
            cuts = tuple((cut.mark, cut.tuples) for cut in iter_cuts(log, read.start, position, epoch))
        except CheckpointError as error:
            return events.LogUnreadable(read, str(error))
        return events.LogRead(read.task, read.written, cuts)

    def _remind(self, task: int, committed: int) -> None:
        """Tells a task of all that may not be in its snapshot; what is there, it ignores."""
        host = self._host_of[task]
        for settle in self._outcomes.unsaved(task):
            host.send(settle)
        host.send(messages.Consumed(task, committed))
        if host.active != self.active:
            host.send(messages.SetActive(self.active))

    def _on_gone(self, host: HostProcess, status: str) -> float | None:
        """Returns the pause before a host that died is started again; None if the topology ends."""
        for instruction in self._step(events.HostGone(host.tasks, host.ran_secs)):
            spouts = listed(sorted({self._wiring.component_of[task] for task in host.tasks}))
            reason = f"the process {host.pid} of spout {spouts} ended unexpectedly ({status})"
            if isinstance(instruction, events.StartHost):
                log.warning("%s; it is started again", reason)
                for task in host.tasks:
                    self.metrics.spout_gone(task)
                    self.metrics.add_failure(
                        Failure(self._wiring.component_of[task], task, f"{reason}; it is started again", "", False)
                    )
                return instruction.pause
            assert isinstance(instruction, events.GiveUpHost)
            count = instruction.restarts
            times = f", after {count} restarts in a row" if count else " while it was opened"
            self._give_up(f"{reason}{times}; look for what ends it: memory, or a crash in native code")
        return None

    def _give_up(self, reason: Failure | str) -> None:
        self._on_failure(Failure("", None, reason) if isinstance(reason, str) else reason)
        self._step(events.Ended())

    @contextmanager
    def _writing_checkpoint(self) -> Iterator[None]:
        """Ends the topology when the checkpoint can't be written: neither Spark nor a host's thread would report it."""
        try:
            yield
        except OSError as error:
            self._give_up(f"the checkpoint can't be written: {error}")
