"""The rules of micro-batches, against spouts that cut, die and start again, and Spark that plans, all at random."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lengths import examples

from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.rules import events
from storm_on_spark.runtime.batches.rules.planning import BatchPace, BatchRules, Phase, beside_native
from storm_on_spark.runtime.batches.rules.size import BatchSize
from storm_on_spark.runtime.reports.report import SpoutStats
from storm_on_spark.runtime.spouts.log import Mark, WriterEpoch
from storm_on_spark.runtime.spouts.messages import Consumed, Failed, Idle, Progress, Ready, SetActive, SetClock, Want

HOSTS = ((3,), (4, 5))
TICK_MS, TIMEOUT_MS = 500, 3_000
PACE = BatchPace()


def progress(task: int, written: Mark, cut: bool, tuples: int, pending: int = 0, exhausted: bool = False) -> Progress:
    stats = SpoutStats(pending=pending, exhausted=exhausted)
    return Progress(task, written, cut, tuples, -1, stats, Latencies(), ())


class Spout:
    """What really is in a task's log, and what the driver was told."""

    def __init__(self) -> None:
        #: (end, tuples) of all cuts; how many of these were said; how many are planned.
        self.log: list[tuple[Mark, int]] = []
        self.said = self.planned = 0
        self.open = self.opened = False
        self.answered = self.idle = self.quiet = self.exhausted = False
        self.pending = 0
        #: What it was told.
        self.consumed = 0

    def waiting(self) -> list[int]:
        return [tuples for _, tuples in self.log[self.planned : self.said]]

    def gone(self) -> None:
        self.open = self.idle = self.quiet = self.exhausted = False


class Driver(RuleBasedStateMachine):
    """The coordinator's view of hosts and Spark."""

    @initialize(
        most=st.integers(1, 40),
        interval=st.sampled_from([0.0, 0.1, 1.0]),
        timeouts=st.booleans(),
        ticks=st.booleans(),
        clock_runs=st.booleans(),
        opened=st.sampled_from([(3, 4, 5), (3, 4, 5), (3,), ()]),
    )
    def start(
        self, most: int, interval: float, timeouts: bool, ticks: bool, clock_runs: bool, opened: tuple[int, ...]
    ) -> None:
        self.secs, self.clock_ms, self.clock_runs = 50.0, 0, clock_runs
        self.interval, self.most = interval, most
        self.periods, self.timeouts = {TICK_MS} if ticks else set(), timeouts
        self.spouts = {task: Spout() for host in HOSTS for task in host}
        self.active, self.stopped, self.let_go = True, False, False
        self.writers, self.deaths = 0, dict.fromkeys(HOSTS, 0)
        self.start_offset = Offset()
        self.carried = -1
        self.planned_at = float("-inf")
        self.polled_at = self.due_at = None
        self.quiet = 0
        self.rules = BatchRules(
            HOSTS,
            BatchSize(most, 1e9),
            interval,
            TIMEOUT_MS if timeouts else None,
            self.periods,
            active=True,
            clock_runs=clock_runs,
        )
        assert self.step(events.Started(Offset(), -1)) == []
        for task in opened:
            self.open(task)

    def step(self, event: events.Event) -> list[events.Instruction]:
        return self.rules.step(event, events.Moment(self.secs, self.clock_ms))

    # --- spouts ---------------------------------------------------------------------------------------------------

    @rule(task=st.sampled_from([3, 4, 5]))
    def open(self, task: int) -> None:
        spout = self.spouts[task]
        if spout.open or self.stopped:
            return
        self.writers += 1
        known = spout.log[spout.said - 1][0] if spout.said else Mark()
        written = spout.log[-1][0] if spout.log else Mark()
        (read,) = self.step(Ready(task, written))
        assert read == events.ReadLog(task, known.position, written, spout.consumed if spout.opened else None)
        assert task in self.rules.unopened()
        assert not self.rules.is_ready(task), "it is told of outcomes only when it was told of the earlier ones"
        assert self.step(events.LogRead(task, written, tuple(spout.log[spout.said :]))) == []
        spout.open, spout.opened, spout.said = True, True, len(spout.log)
        assert self.rules.is_ready(task)

    @rule(task=st.sampled_from([3, 4, 5]), tuples=st.integers(0, 15), pending=st.integers(0, 2), said=st.booleans())
    def cut(self, task: int, tuples: int, pending: int, said: bool) -> None:
        """A task cuts; it says so, or dies before."""
        spout = self.spouts[task]
        if not spout.open:
            return
        end = spout.log[-1][0].position if spout.log else 0
        spout.log.append((Mark(end + 10 + tuples, WriterEpoch(1, self.writers)), tuples))
        host = next(host for host in HOSTS if task in host)
        if not said and all(self.spouts[other].open for other in host):
            self.die(host, 1e4)
            return
        spout.said, spout.pending, spout.exhausted = len(spout.log), pending, False
        if tuples:
            spout.answered, spout.idle, spout.quiet = True, False, False
        assert self.step(progress(task, spout.log[-1][0], True, tuples, pending)) == []

    @rule(task=st.sampled_from([3, 4, 5]), pending=st.integers(0, 1), exhausted=st.booleans())
    def report(self, task: int, pending: int, exhausted: bool) -> None:
        spout = self.spouts[task]
        if spout.open:
            spout.pending, spout.exhausted = pending, exhausted
            assert self.step(progress(task, Mark(), False, 0, pending, exhausted)) == []

    @rule(task=st.sampled_from([3, 4, 5]))
    def idle(self, task: int) -> None:
        spout = self.spouts[task]
        if spout.open:
            spout.answered, spout.idle, spout.quiet = True, True, not self.active
            assert self.step(Idle(task, self.active)) == []

    @rule(host=st.sampled_from(HOSTS), ran=st.sampled_from([1.0, 1.0, 1e4]))
    def die(self, host: tuple[int, ...], ran: float) -> None:
        spouts = [self.spouts[task] for task in host]
        if not all(spout.open for spout in spouts):
            return
        self.deaths[host] = 1 if ran >= 60 else self.deaths[host] + 1
        (done,) = self.step(events.HostGone(host, ran)) or [None]
        for spout in spouts:
            spout.gone()
        if self.stopped:
            assert done is None
        elif self.deaths[host] > 5:
            assert done == events.GiveUpHost(5), "the sixth death in a row is the last"
            self.step(events.Ended())
            self.stopped = True
        else:
            assert isinstance(done, events.StartHost)

    # --- Spark ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.polled_at is None)
    @rule()
    def poll(self) -> None:
        assert self.step(events.Polled(self.start_offset)) == [events.TellOutcomes()]
        done = self.step(events.Committed())
        clocks = [tell.message for tell in done if isinstance(tell, events.Tell) and isinstance(tell.message, SetClock)]
        for task, spout in self.spouts.items():
            position = self.start_offset.logs.get(task, 0)
            told = events.Tell(Consumed(task, position), task)
            assert (told in done) == (position > spout.consumed), "told once of all that is committed"
            spout.consumed = max(position, spout.consumed)
            spout.answered = spout.idle = False
            assert self.rules.consumed(task) == spout.consumed
        assert events.DropCarried(self.start_offset.carried) in done
        assert clocks == ([] if self.clock_runs else [SetClock(self.clock_ms)])
        assert isinstance(done[-1], events.Tell)
        assert isinstance(done[-1].message, Want)
        assert done[-1].message.share <= self.most
        self.polled_at, self.due_at = self.secs, None

    @precondition(lambda self: self.polled_at is not None)
    @rule()
    def look(self) -> None:
        self.looked()

    def looked(self) -> float | None:
        """The driver looks whether a micro-batch is due; returns how long it waits, or None if it answered Spark."""
        *before, answer = self.step(events.Looked())
        assert before in ([], [events.Complete()])
        if before:
            assert self.active
            assert all(s.open and s.idle and s.exhausted and not s.pending for s in self.spouts.values())
            assert not any(any(spout.waiting()) for spout in self.spouts.values()), "all tuples are done"
        due = self.is_due()
        full = sum(sum(spout.waiting()) for spout in self.spouts.values()) >= self.most
        answered = all(spout.answered for spout in self.spouts.values())
        rested = self.secs >= self.planned_at + self.interval
        if due and self.due_at is None:
            self.due_at = self.secs
        if isinstance(answer, events.Plan):
            assert due, "no micro-batch without a reason"
            moment = self.secs >= min(self.due_at + PACE.answer_secs, self.deadline())
            assert rested or full, "the interval passes unless the micro-batch is full"
            assert full or answered or moment, "every spout has a moment to cut"
            self.planned(answer.end)
        elif isinstance(answer, events.NothingNew):
            assert answer.start == self.start_offset
            assert self.stopped or self.let_go or (not due and self.secs >= self.deadline())
            self.quiet += 1
            self.polled_at = None
        else:
            assert isinstance(answer, events.WaitForNews)
            assert answer.secs > 0
            assert not self.stopped, "a topology that ends does not wait"
            assert not self.let_go, "neither does a query"
            assert not due or not full, "a full micro-batch is planned at once"
            assert not due or not answered or not rested, "and any other when all spouts have answered"
            if not due:
                assert answer.secs <= self.deadline() - self.secs + 1e-9
                if not self.clock_runs:
                    assert answer.secs <= 0.01, "nobody says that a clock which is driven by hand has moved"
                elif self.due_periods():
                    assert answer.secs <= min(p - self.clock_ms % p for p in self.due_periods()) / 1000 + 1e-9
            else:
                assert answer.secs <= max(PACE.answer_secs, self.planned_at + self.interval - self.secs) + 1e-9
            return answer.secs
        return None

    @precondition(lambda self: self.polled_at is not None)
    @rule()
    def wait_without_news(self) -> None:
        """Nobody says anything: Spark gets its answer, after as many looks as there are reasons to look."""
        for _ in range(400):
            secs = self.looked()
            if secs is None:
                return
            self.pass_time(secs)
        raise AssertionError("a poll never ends")

    def deadline(self) -> float:
        assert self.polled_at is not None
        if self.quiet >= PACE.idle_polls:
            return self.polled_at + PACE.idle_poll_secs
        return self.polled_at + min(PACE.most_poll_secs, PACE.poll_secs * 2 ** min(self.quiet, 8))

    def due_periods(self) -> set[int]:
        pending = self.timeouts and any(spout.pending for spout in self.spouts.values())
        return self.periods | ({TIMEOUT_MS} if pending else set())

    def is_due(self) -> bool:
        if any(any(spout.waiting()) for spout in self.spouts.values()) or self.carried > self.start_offset.carried:
            return True
        return any(self.clock_ms // p != self.start_offset.clock // p for p in self.due_periods())

    def planned(self, end: Offset) -> None:
        giving = sum(any(spout.waiting()) for spout in self.spouts.values())
        share = max(1, self.most // max(1, giving))
        for task, spout in self.spouts.items():
            taken = 0
            while spout.planned < spout.said and spout.log[spout.planned][0].position <= end.logs.get(task, 0):
                tuples = spout.log[spout.planned][1]
                assert taken == 0 or taken + tuples <= share, "its share of each task, but at least one cut"
                taken, spout.planned = taken + tuples, spout.planned + 1
            if spout.planned:
                assert end.mark(task) == spout.log[spout.planned - 1][0], "it ends at the end of a cut that was said"
            if spout.planned < spout.said:
                assert taken + spout.log[spout.planned][1] > share, "and all that fits"
        assert end.clock == max(self.start_offset.clock, self.clock_ms)
        assert end.carried == self.carried
        self.start_offset, self.planned_at, self.polled_at, self.quiet = end, self.secs, None, 0

    @precondition(lambda self: self.polled_at is None)
    @rule()
    def deliver(self) -> None:
        self.carried += 1
        assert self.step(events.Delivered(self.carried)) == []

    # --- time and users -------------------------------------------------------------------------------------------

    @rule(secs=st.sampled_from([0.001, 0.006, 0.3, 2.0]))
    def pass_time(self, secs: float) -> None:
        self.secs += secs
        if self.clock_runs:
            # Whole milliseconds, and none of them lost.
            self.clock_ms = round(1000 * (self.secs - 50.0) + 0.4999)

    @rule(ms=st.sampled_from([100, 600, 5_000]))
    def move_clock(self, ms: int) -> None:
        if not self.clock_runs:
            self.clock_ms += ms

    @rule(active=st.booleans())
    def activate(self, active: bool) -> None:
        done = self.step(events.Activated(active))
        if active == self.active:
            assert done == []
            return
        assert done == (
            [events.Tell(SetActive(True))] if active else [events.Tell(SetActive(False)), events.Tell(Want())]
        )
        self.active = active
        for spout in self.spouts.values():
            spout.quiet = False

    @invariant()
    def is_drained_when_all_are_quiet_and_all_is_committed(self) -> None:
        if hasattr(self, "rules"):
            drained = all(
                spout.open
                and spout.quiet
                and not spout.pending
                and not any(tuples for mark, tuples in spout.log[: spout.said] if mark.position > spout.consumed)
                for spout in self.spouts.values()
            )
            assert self.rules.is_drained() == drained

    def teardown(self) -> None:
        """A query that ends gets its answer at once."""
        if hasattr(self, "rules"):
            if self.polled_at is None:
                self.poll()
            self.let_go = True
            assert self.step(events.LetGo()) == []
            assert self.looked() is None
            assert self.rules.phase is Phase.IDLE


TestDriver = Driver.TestCase
TestDriver.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)


# --- single rules -------------------------------------------------------------------------------------------------

AT = events.Moment(0.0, 0)


def rules_of(
    *,
    interval: float = 0.0,
    timeout_ms: int | None = None,
    ticks: tuple[int, ...] = (),
    tasks: tuple[int, ...] = (3,),
    active: bool = True,
    planned: Offset | None = None,
    checkpoint_secs: float = 0.0,
    checkpoint_bytes: int | None = None,
    pace: BatchPace = PACE,
) -> BatchRules:
    rules = BatchRules(
        [tasks],
        BatchSize(1000, 5.0),
        interval,
        timeout_ms,
        ticks,
        active=active,
        clock_runs=True,
        checkpoint_secs=checkpoint_secs,
        checkpoint_bytes=checkpoint_bytes,
        pace=pace,
    )
    rules.step(events.Started(planned or Offset(), -1), AT)
    return rules


def open_task(rules: BatchRules) -> None:
    rules.step(Ready(3, Mark()), AT)
    rules.step(events.LogRead(3, Mark(), ()), AT)


def cut(rules: BatchRules, end: int, tuples: int, task: int = 3) -> None:
    rules.step(progress(task, Mark(end), True, tuples), AT)


def poll(rules: BatchRules, at: events.Moment) -> list[events.Instruction]:
    rules.step(events.Polled(Offset(clock=at.clock_ms)), at)
    rules.step(events.Committed(), at)
    return rules.step(events.Looked(), at)


def test_an_idle_poll_wakes_when_a_tick_or_a_timeout_is_due() -> None:
    at = events.Moment(0.0, 12_300)
    rules = rules_of(ticks=(12_350,))
    assert poll(rules, at) == [events.WaitForNews(0.05)]
    rules = rules_of(timeout_ms=12_350)
    assert poll(rules, at) == [events.WaitForNews(0.2)], "nothing is pending"
    rules.step(progress(3, Mark(), False, 0, pending=1), at)
    assert rules.step(events.Looked(), at) == [events.WaitForNews(0.05)]


def test_polls_without_news_take_longer_each_and_are_short_again_after_news() -> None:
    rules, secs, waits = rules_of(), 0.0, []
    for _ in range(5):
        (wait,) = poll(rules, events.Moment(secs, 0))
        assert isinstance(wait, events.WaitForNews)
        waits.append(round(wait.secs, 3))
        secs += wait.secs
        assert rules.step(events.Looked(), events.Moment(secs, 0)) == [events.NothingNew(Offset())]
    assert waits == [0.2, 0.4, 0.8, 1.6, 1.6]


def test_another_drivers_plan_is_refused() -> None:
    (refuse,) = rules_of().step(events.Polled(Offset({3: 10})), AT)
    assert isinstance(refuse, events.Refuse)
    assert "another one runs on this checkpoint" in refuse.reason


@pytest.mark.parametrize("again", [False, True])
def test_a_log_that_can_not_be_read_is_refused_at_the_start_and_ends_the_topology_later(again: bool) -> None:
    rules = rules_of()
    if again:
        open_task(rules)
        rules.step(events.HostGone((3,), 1.0), AT)
    (read,) = rules.step(Ready(3, Mark(5)), AT)
    assert isinstance(read, events.ReadLog)
    assert rules.step(events.LogUnreadable(read, "torn"), AT) == ([events.GiveUp("torn")] if again else [])
    assert rules.refusal == "torn"


@pytest.mark.parametrize("again", [False, True])
def test_a_spout_that_refuses_the_checkpoint_is_no_failure_before_it_was_open(again: bool) -> None:
    rules, failed = rules_of(), Failed(3, "spout", "no", "trace", refused=True)
    if again:
        open_task(rules)
    assert rules.step(failed, AT) == ([events.GiveUp(failed.failure)] if again else [])
    assert rules.refusal == (None if again else "no")


def test_a_host_that_dies_before_all_its_spouts_are_open_is_not_started_again() -> None:
    assert rules_of().step(events.HostGone((3,), 1e4), AT) == [events.GiveUpHost(0)]


def test_a_micro_batch_waits_a_moment_for_the_spouts_that_have_not_answered_and_no_longer() -> None:
    rules = rules_of(tasks=(3, 4))
    assert poll(rules, AT) == [events.WaitForNews(PACE.poll_secs)]
    cut(rules, 10, 5)
    assert rules.step(events.Looked(), AT) == [events.WaitForNews(PACE.answer_secs)], "task 4 may have something"
    rules.step(Idle(4, active=True), AT)
    assert rules.step(events.Looked(), AT) == [events.Plan(Offset({3: 10}, epochs={3: Mark().epoch}))]
    rules = rules_of(tasks=(3, 4))
    poll(rules, AT)
    cut(rules, 10, 5)
    rules.step(events.Looked(), AT)
    assert isinstance(rules.step(events.Looked(), events.Moment(PACE.answer_secs, 0))[0], events.Plan), (
        "task 4 may be busy for long"
    )


@pytest.mark.parametrize("full", [False, True])
def test_the_interval_passes_between_two_micro_batches_unless_the_next_one_is_full(full: bool) -> None:
    rules = rules_of(interval=1.0)
    poll(rules, AT)
    cut(rules, 10, 5)
    (first,) = rules.step(events.Looked(), AT)
    assert isinstance(first, events.Plan), "nothing was planned before"
    rules.step(events.Polled(first.end), AT)
    rules.step(events.Committed(), AT)
    cut(rules, 20, 999)
    assert rules.step(events.Looked(), events.Moment(0.25, 0)) == [events.WaitForNews(0.75)]
    if full:
        cut(rules, 30, 1)
    (second,) = rules.step(events.Looked(), events.Moment(0.5 if full else 1.0, 0))
    assert isinstance(second, events.Plan)


@pytest.mark.parametrize("active", [False, True])
def test_only_active_spouts_that_are_exhausted_complete_a_topology(active: bool) -> None:
    rules = rules_of(active=active)
    open_task(rules)
    poll(rules, AT)
    rules.step(progress(3, Mark(), False, 0, exhausted=True), AT)
    assert events.Complete() not in rules.step(events.Looked(), AT), "it may have something to cut"
    rules.step(Idle(3, active=active), AT)
    assert (events.Complete() in rules.step(events.Looked(), AT)) == active
    rules.step(progress(3, Mark(), False, 0, pending=1, exhausted=True), AT)
    assert events.Complete() not in rules.step(events.Looked(), AT), "a message may fail yet, and be emitted again"


def test_the_last_checkpoint_of_a_finite_topology_in_real_time_waits_for_no_interval() -> None:
    rules = rules_of(checkpoint_secs=60.0)
    open_task(rules)
    poll(rules, AT)
    cut(rules, 10, 5)
    (first,) = rules.step(events.Looked(), AT)
    assert isinstance(first, events.Plan)
    rules.step(events.WentLive(on=True), AT)
    rules.step(events.Polled(first.end), AT)
    rules.step(events.Committed(), AT)
    cut(rules, 20, 5)
    now = events.Moment(1.0, 0)
    rules.step(progress(3, Mark(20), False, 0, pending=5), now)
    (waits,) = rules.step(events.Looked(), now)
    assert isinstance(waits, events.WaitForNews), "more may come"
    rules.step(progress(3, Mark(20), False, 0, pending=1, exhausted=True), now)
    (waits,) = rules.step(events.Looked(), now)
    assert isinstance(waits, events.WaitForNews), "it is not done"
    rules.step(progress(3, Mark(20), False, 0, exhausted=True), now)
    assert rules.step(events.Looked(), now) == [events.AskBarrier(first.end, {3: Mark(20)})]
    end = Offset({3: 20}, epochs={3: Mark().epoch})
    assert rules.step(events.WasCut(end), now) == [events.Plan(end)]
    rules.step(events.Polled(end), now)
    rules.step(events.Committed(), now)
    rules.step(Idle(3, active=True), now)
    assert events.Complete() in rules.step(events.Looked(), now)


def acked_by_a_timer(rules: BatchRules, now: events.Moment, *, exhausted: bool = True) -> Offset:
    """Plans a checkpoint while a window holds a message; then a timer acks it. Returns the checkpoint's end."""
    open_task(rules)
    rules.step(progress(3, Mark(), False, 0), AT)
    poll(rules, AT)
    rules.step(events.WentLive(on=True), AT)
    rules.step(progress(3, Mark(10), True, 5, pending=1), AT)
    rules.step(events.Activated(active=False), AT)  # somebody waits for a checkpoint
    assert isinstance(rules.step(events.Looked(), AT)[-1], events.AskBarrier)
    end = Offset({3: 10}, epochs={3: Mark().epoch})
    assert rules.step(events.WasCut(end), AT) == [events.Plan(end)]
    rules.step(events.Polled(end), AT)
    rules.step(events.Committed(), AT)
    rules.step(progress(3, Mark(10), False, 0, exhausted=exhausted), now)
    return end


def cut_and_committed(rules: BatchRules, end: Offset, now: events.Moment) -> None:
    rules.step(events.WasCut(end), now)
    rules.step(events.Polled(end), now)
    rules.step(events.Committed(), now)


@pytest.mark.parametrize("dies", [False, True])
def test_what_was_executed_live_behind_the_last_checkpoint_gets_one_before_a_topology_is_complete(dies: bool) -> None:
    now = events.Moment(1.0, 700)
    rules = rules_of(checkpoint_secs=60.0)
    first = acked_by_a_timer(rules, now)
    rules.step(events.Activated(active=True), now)
    rules.step(Idle(3, active=True), now)
    if dies:
        rules.step(events.WentLive(on=False), now)
        assert rules.step(events.Looked(), now) == [events.Plan(dataclasses.replace(first, clock=700))]
        rules.step(events.Polled(dataclasses.replace(first, clock=700)), now)
        rules.step(events.Committed(), now)
    else:
        assert rules.step(events.Looked(), now) == [events.AskBarrier(first, {3: Mark(10)})]
        cut_and_committed(rules, dataclasses.replace(first, clock=650), now)
    rules.step(Idle(3, active=True), now)
    assert rules.step(events.Looked(), now)[0] == events.Complete()


def test_what_was_executed_live_behind_the_last_checkpoint_gets_one_before_a_topology_is_drained_or_settled() -> None:
    now = events.Moment(1.0, 700)
    rules = rules_of(checkpoint_secs=60.0)
    first = acked_by_a_timer(rules, now, exhausted=False)
    rules.step(Idle(3, active=False), now)
    assert not rules.is_drained()
    assert not rules.is_settled()
    assert rules.step(events.Looked(), now) == [events.AskBarrier(first, {3: Mark(10)})]
    rules.step(events.WasCut(dataclasses.replace(first, clock=650)), now)
    assert not rules.is_drained(), "it is not committed"
    rules.step(events.Polled(dataclasses.replace(first, clock=650)), now)
    rules.step(events.Committed(), now)
    assert rules.is_drained()
    assert rules.is_settled()


def test_a_checkpoint_with_tuples_of_which_nobody_has_told_is_not_the_last() -> None:
    now = events.Moment(1.0, 700)
    rules = rules_of(checkpoint_secs=60.0)
    first = acked_by_a_timer(rules, now)
    rules.step(events.Activated(active=True), now)
    further = Offset({3: 20}, 650, epochs=first.epochs)
    rules.step(events.Looked(), now)
    cut_and_committed(rules, further, now)
    rules.step(progress(3, Mark(20), True, 5, pending=0, exhausted=True), now)  # acked live meanwhile
    rules.step(Idle(3, active=True), now)
    assert rules.step(events.Looked(), now) == [events.AskBarrier(further, {3: Mark(20)})]


@pytest.mark.parametrize("executed", [False, True])
def test_a_topology_killed_after_its_last_round_has_a_micro_batch_before_it_is_complete(
    executed: bool,
) -> None:
    planned, now = Offset({3: 10}, 100, epochs={3: Mark().epoch}), events.Moment(0.0, 700)
    rules = rules_of()
    rules.step(events.Started(planned, -1, executed), now)
    rules.step(Ready(3, Mark(10)), now)
    rules.step(events.LogRead(3, Mark(10), ()), now)
    rules.step(events.Polled(planned), now)
    rules.step(events.Committed(), now)
    rules.step(Idle(3, active=True), now)
    assert rules.step(events.Looked(), now) == [events.WaitForNews(0.2)], "how many messages are pending is not known"
    rules.step(progress(3, Mark(10), False, 0, exhausted=True), now)
    (first, *_) = rules.step(events.Looked(), now)
    assert first == (events.Plan(dataclasses.replace(planned, clock=700)) if executed else events.Complete())


@pytest.mark.parametrize(
    ("event", "since"),
    [
        (events.Activated(active=False), 0.0),  # nothing more comes
        (progress(3, Mark(2000), True, 5), 0.0),  # the log is about to be full
        (events.Awaited(), 1.0),
        (None, 60.0),
    ],
)
def test_a_checkpoint_waits_for_its_interval_unless_somebody_waits_for_it(
    event: events.Event | None, since: float
) -> None:
    rules = rules_of(checkpoint_secs=60.0, checkpoint_bytes=1500)
    open_task(rules)
    poll(rules, AT)
    cut(rules, 10, 5)
    (first,) = rules.step(events.Looked(), AT)
    assert isinstance(first, events.Plan)
    rules.step(events.WentLive(on=True), AT)
    rules.step(events.Polled(first.end), AT)
    rules.step(events.Committed(), AT)
    cut(rules, 20, 5)

    def planned(secs: float) -> bool:
        now = events.Moment(secs, 0)
        if event is not None:
            rules.step(event, now)
        return isinstance(rules.step(events.Looked(), now)[-1], events.AskBarrier)

    assert since == 0 or not planned(since - 0.1)
    assert planned(since + 0.1)


def test_a_topology_whose_micro_batches_are_slower_than_its_ticks_is_complete_at_some_time() -> None:
    rules = rules_of(ticks=(1000,))
    open_task(rules)
    poll(rules, AT)
    rules.step(progress(3, Mark(), False, 0, exhausted=True), AT)
    rules.step(Idle(3, active=True), AT)
    assert rules.step(events.Looked(), events.Moment(10.0, 10_000))[0] == events.Complete()
    poll(rules, events.Moment(10.0, 10_000))
    cut(rules, 10, 1)
    assert events.Complete() not in rules.step(events.Looked(), events.Moment(10.0, 10_000)), "a tuple is left"


def test_spouts_without_tuples_take_nothing_of_a_micro_batch() -> None:
    rules = rules_of(tasks=(3, 4))
    poll(rules, AT)
    for end, tuples in [(10, 600), (20, 400), (30, 1)]:
        cut(rules, end, tuples)
    (plan,) = rules.step(events.Looked(), AT)
    assert isinstance(plan, events.Plan)
    assert plan.end.logs == {3: 20}, "all 1000 tuples of a micro-batch are task 3's"


def test_a_topology_goes_on_from_what_was_planned() -> None:
    epoch = WriterEpoch(7, 2)
    planned = Offset({3: 100}, clock=40, carried=6, epochs={3: epoch})
    rules = rules_of(planned=planned)
    assert (rules.head(3), rules.consumed(3)) == (Mark(100, epoch), 100)
    assert rules.step(Ready(3, Mark(150, epoch)), AT) == [events.ReadLog(3, 100, Mark(150, epoch), remind=None)]
    rules.step(events.LogRead(3, Mark(150, epoch), ((Mark(150, epoch), 0),)), AT)
    rules.step(progress(3, Mark(150, epoch), False, 0, exhausted=True), AT)
    assert rules.step(events.Polled(planned), AT) == [events.TellOutcomes()]
    assert rules.step(events.Committed(), AT) == [
        events.Tell(Consumed(3, 100), 3),
        events.DropCarried(6),
        events.Tell(Want(1000)),
    ]
    rules.step(Idle(3, active=True), AT)
    assert rules.step(events.Looked(), AT)[0] == events.Complete(), "all tuples of the log were planned"
    cut(rules, 200, 4)
    (plan,) = rules.step(events.Looked(), AT)
    assert plan == events.Plan(Offset({3: 200}, clock=40, carried=6, epochs={3: Mark().epoch}))
    # The host dies: what was committed before it, it is reminded of; what is planned, it isn't.
    rules.step(events.HostGone((3,), 1e4), AT)
    assert rules.step(Ready(3, Mark(200)), AT) == [events.ReadLog(3, 200, Mark(200), remind=100)]


def test_what_was_planned_at_the_start_is_not_committed_before_spark_asks() -> None:
    planned = Offset({3: 100}, epochs={3: Mark().epoch})
    rules = rules_of(active=False, planned=planned)
    for _ in range(2):
        # What Spark has planned may run again: the log must keep it, also for a host that is started again.
        (read,) = rules.step(Ready(3, Mark(100)), AT)
        rules.step(events.LogRead(3, Mark(100), ()), AT)
        rules.step(Idle(3, active=False), AT)
        assert not rules.is_drained(), "what was planned may still run"
        rules.step(events.HostGone((3,), 1e4), AT)
    assert read == events.ReadLog(3, 100, Mark(100), remind=0)
    rules.step(Ready(3, Mark(100)), AT)
    rules.step(events.LogRead(3, Mark(100), ()), AT)
    rules.step(Idle(3, active=False), AT)
    rules.step(events.Polled(planned), AT)
    rules.step(events.Committed(), AT)
    assert rules.is_drained()


def test_beside_sources_of_sparks_own_nothing_is_drained_before_spark_has_asked_twice() -> None:
    rules = rules_of(pace=beside_native(PACE))
    open_task(rules)
    for _ in range(2):
        rules.step(events.Activated(False), AT)
        for _ in range(2):
            assert not rules.is_drained(), "a micro-batch may have rows of which no spout has heard"
            rules.step(Idle(3, active=False), AT)
            poll(rules, AT)
        assert rules.is_drained()
        rules.step(events.Activated(True), AT)
        poll(rules, AT)


@pytest.mark.parametrize(("kept", "drained"), [(2, True), (1, False)])
def test_what_an_inactive_spout_keeps_for_another_attempt_is_not_waited_for(kept: int, drained: bool) -> None:
    rules = rules_of(active=False)
    rules.step(Ready(3, Mark()), AT)
    rules.step(events.LogRead(3, Mark(), ()), AT)
    rules.step(dataclasses.replace(progress(3, Mark(), False, 0, pending=2), waiting=kept), AT)
    rules.step(Idle(3, active=False), AT)
    assert rules.is_drained() == drained
    assert not rules.is_settled()


@pytest.mark.parametrize("said_first", ["idle", "exhausted"])
def test_what_a_host_said_before_it_died_completes_no_topology(said_first: str) -> None:
    rules = rules_of()
    open_task(rules)
    poll(rules, AT)
    idle, exhausted = Idle(3, active=True), progress(3, Mark(), False, 0, exhausted=True)
    rules.step(exhausted, AT)
    rules.step(idle, AT)
    rules.step(events.HostGone((3,), 1e4), AT)
    assert events.Complete() not in rules.step(events.Looked(), AT)
    open_task(rules)
    rules.step(idle if said_first == "idle" else exhausted, AT)
    assert events.Complete() not in rules.step(events.Looked(), AT), "its snapshot may be older, and it emits again"
    rules.step(exhausted if said_first == "idle" else idle, AT)
    assert events.Complete() in rules.step(events.Looked(), AT)


def test_polls_without_news_wait_longer_and_longer_until_there_is_some() -> None:
    rules, now, waits = rules_of(), 0.0, []
    while now < 90:
        [answer] = poll(rules, events.Moment(now, 0))
        assert isinstance(answer, events.WaitForNews)
        waits.append(answer.secs)
        now += answer.secs
        rules.step(events.Looked(), events.Moment(now, 0))
    waits = [round(wait, 6) for wait in waits]
    assert waits == sorted(waits)
    assert sorted(set(waits)) == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert 50 < sum(wait for wait in waits if wait < 2) < 70
    cut(rules, 10, 5)
    poll(rules, events.Moment(now, 0))
    assert isinstance(rules.step(events.Looked(), events.Moment(now + 1, 0))[-1], events.Plan)
    [answer] = poll(rules, events.Moment(now + 1, 0))[-1:]
    assert answer == events.WaitForNews(pytest.approx(PACE.poll_secs))
