"""The rules of a spout task's pace, against a task to which things happen at random."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lengths import examples

from storm_on_spark.runtime.spouts import pacing


class Load(NamedTuple):
    """What a task holds."""

    fresh: int
    dirty: bool
    pending: int
    log_end: int


PACE = pacing.Pace(cut_bytes=4_000, guessed_tuple_bytes=100)
CUT_TUPLES = 40


class PacedTask(RuleBasedStateMachine):
    """A task, its log, and the coordinator's view of it.

    Time moves in steps of its own and within bursts. Each call emits one tuple of `width` bytes.
    """

    @initialize(
        max_pending=st.none() | st.integers(1, 60),
        log_bytes=st.integers(200, 8_000),
        share=st.integers(1, 50),
        left=st.lists(st.integers(0, 20), max_size=3),
    )
    def open(self, max_pending: int | None, log_bytes: int, share: int, left: list[int]) -> None:
        self.now, self.active = 100.0, True
        self.max_pending, self.log_bytes, self.share = max_pending, log_bytes, share
        #: All cuts behind what is committed: (end, tuples). Those that are there already are planned and not committed.
        self.cuts: deque[tuple[int, int]] = deque()
        self.end = 0
        for tuples in left:
            self.end += 10 + 10 * tuples
            self.cuts.append((self.end, tuples))
        self.consumed, self.fresh, self.pending, self.settled = 0, 0, 0, False
        self.tuple_bytes = float(PACE.guessed_tuple_bytes)
        self.widest, self.shares = PACE.guessed_tuple_bytes, [share]
        #: When the coordinator asked without an answer; since when something waits; when the last cut was, how long.
        self.asked_at: float | None = None
        self.wanted_at: float | None = None
        self.dirty_at: float | None = None
        self.cut_at, self.cut_secs = self.now, 0.0
        self.reported_at = 0.0
        self.rules = pacing.PacingRules(
            max_pending, log_bytes, share, CUT_TUPLES, self.cuts, consumed=0, now=self.now, pace=PACE
        )

    def load(self) -> Load:
        return Load(self.fresh, bool(self.fresh or self.settled), self.pending, self.end)

    def waiting(self) -> int:
        return self.fresh + sum(tuples for _, tuples in self.cuts)

    def has_no_room(self) -> bool:
        """The three limits, in the words of the configuration."""
        if self.max_pending is not None and self.pending >= self.max_pending:
            return True
        used = self.end - self.consumed + self.fresh * self.tuple_bytes
        return self.waiting() >= 2 * self.share or (self.waiting() > 0 and used >= self.log_bytes)

    @rule(
        there=st.integers(0, 100),
        width=st.integers(1, 300),
        call_secs=st.sampled_from([0.0, 1e-5, 1e-3, 0.03]),
        tracked=st.booleans(),
        cut_secs=st.sampled_from([0.0, 0.001, 0.1]),
    )
    def turn(self, there: int, width: int, call_secs: float, tracked: bool, cut_secs: float) -> None:
        """The thread comes to the task, whose spout has `there` tuples."""
        emitted, going_on = 0, False
        bursts = self.rules.step(pacing.Turn(self.active), self.now)
        assert len(bursts) == (1 if self.active else 0), "an inactive spout is never called"
        began = self.now
        for burst in bursts:
            full = min(self.share, CUT_TUPLES, max(1, int(PACE.cut_bytes / self.tuple_bytes)))
            assert burst == pacing.Burst(PACE.burst_calls, full, PACE.burst_secs), (
                "by what is wanted and by the last cut"
            )
            reach: float = self.fresh
            while True:
                if emitted == burst.calls or (emitted and (self.fresh >= burst.fresh or self.now > began + burst.secs)):
                    going_on = True
                    break
                if self.fresh >= reach:
                    assert self.rules.blocked(self.load()) == (self.rules.reach(self.load()) <= self.fresh)
                    reach = self.rules.reach(self.load())
                    if self.fresh >= reach:
                        break
                if emitted == there:
                    break
                if self.max_pending is not None:
                    assert self.pending < self.max_pending, "not more than `topology.max.spout.pending`"
                assert self.waiting() < 2 * self.share, "not more than two micro-batches"
                if self.waiting():
                    used = self.end - self.consumed + self.fresh * self.tuple_bytes
                    assert used < self.log_bytes + 1e-6, "the log has room, by the size of the tuples in the last cut"
                self.now += call_secs
                emitted, self.fresh = emitted + 1, self.fresh + 1
                self.pending += tracked
            assert emitted <= PACE.burst_calls
            assert self.now - began <= PACE.burst_secs + call_secs + 1e-9
        self.end_turn(going_on, width, cut_secs)

    def end_turn(self, going_on: bool, width: int, cut_secs: float) -> None:
        load = self.load()
        if load.dirty and self.dirty_at is None:
            self.dirty_at = self.now
        done = self.rules.step(pacing.TurnEnded(load, self.active, going_on), self.now)
        kinds = [type(instruction) for instruction in done]
        assert kinds == [kind for kind in (pacing.MakeCut, pacing.SayIdle, pacing.Report) if kind in kinds], (
            "once each, in this order"
        )
        waited = 0.0 if self.dirty_at is None else self.now - self.dirty_at
        rested = self.now - self.cut_at >= PACE.cut_share * self.cut_secs
        gathered = self.wanted_at is not None and self.now - self.wanted_at >= PACE.gather_secs
        if pacing.MakeCut in kinds:
            assert load.dirty, "a cut says something new"
            full = load.fresh >= min(self.share, CUT_TUPLES, PACE.cut_bytes // self.widest)
            assert full or (self.wanted_at is not None and load.fresh) or (waited >= PACE.cut_secs and rested)
            assert load.fresh <= min(CUT_TUPLES, max(self.shares))
        else:
            assert load.fresh < self.share
            assert not (self.wanted_at is not None and load.fresh and (gathered or not going_on)), "a wish is fulfilled"
            assert not (waited >= PACE.cut_secs and rested and (self.wanted_at is None or not going_on)), "in time"
        if pacing.SayIdle in kinds:
            assert self.asked_at is not None, "nobody is answered who did not ask, and nobody twice"
            assert not load.fresh, "a spout with tuples is not idle"
        if self.asked_at is not None and not load.fresh:
            assert pacing.SayIdle in kinds, "one that has nothing says so at once"
        assert (pacing.Report in kinds) == (self.now - self.reported_at > PACE.report_secs)
        if pacing.Report in kinds:
            self.reported_at = self.now
        if pacing.MakeCut in kinds:
            self.cut(width, cut_secs)
        if pacing.SayIdle in kinds:
            self.asked_at = None

    def cut(self, width: int, secs: float) -> None:
        tuples, size = self.fresh, self.fresh * width
        self.end += 100 + size
        if tuples:
            self.tuple_bytes = max(1.0, size / tuples)
            # Its tuples may be of an earlier turn, and are taken to be as wide as those of the last one.
            self.widest = max(self.widest, width)
        self.cuts.append((self.end, tuples))
        self.fresh, self.settled, self.dirty_at = 0, False, None
        self.now += secs
        assert self.rules.step(pacing.WasCut(self.end, tuples, size, secs), self.now) == ()
        self.cut_at, self.cut_secs = self.now, secs
        if tuples:
            self.asked_at = self.wanted_at = None

    @rule(share=st.none() | st.integers(1, 50))
    def want(self, share: int | None) -> None:
        assert self.rules.step(pacing.Wanted(share), self.now) == ()
        self.share = share or self.share
        self.shares.append(self.share)
        self.asked_at = self.wanted_at = self.now

    @precondition(lambda self: self.cuts)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, len(self.cuts)))):
            self.consumed = self.cuts.popleft()[0]
        assert self.rules.step(pacing.Committed(self.consumed), self.now) == ()
        assert self.rules.committed == self.consumed

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        self.pending -= data.draw(st.integers(1, self.pending))
        self.settled = True

    @rule(secs=st.sampled_from([0.001, 0.01, 0.06, 2.0]))
    def wait(self, secs: float) -> None:
        self.now += secs

    @rule(active=st.booleans())
    def set_active(self, active: bool) -> None:
        self.active = active

    @invariant()
    def what_is_held_can_be_let_go(self) -> None:
        if not hasattr(self, "rules"):
            return
        load = self.load()
        assert self.rules.blocked(load) == self.has_no_room()
        if self.rules.blocked(load):
            full = self.max_pending is not None and self.pending >= self.max_pending
            assert full or self.waiting(), "an ack or a commit will make room"
        if self.rules.held(load, self.active):
            assert not load.dirty, "nothing waits to be cut"

    def teardown(self) -> None:
        """Whatever happened: once all is committed and acked, the spout may continue."""
        if hasattr(self, "rules"):
            self.now += 10
            self.active = True
            self.want(None)
            self.end_turn(False, 10, 0.0)
            if self.settled or self.fresh:
                self.end_turn(False, 10, 0.0)
            assert self.asked_at is None
            self.rules.step(pacing.Committed(self.end), self.now)
            self.pending = 0
            assert not self.rules.blocked(self.load())


TestPacedTask = PacedTask.TestCase
TestPacedTask.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(("active", "going_on"), [(True, True), (True, False), (False, False)])
def test_a_burst_reads_what_fills_a_cut_once(active: bool, going_on: bool) -> None:
    rules = pacing.PacingRules(None, 1 << 20, 7, 1000, (), consumed=0, now=0.0)
    bursts = rules.step(pacing.Turn(active), 1.0)
    assert bursts == ((pacing.Burst(64, 7, 0.002),) if active else ())


def test_waits_of_an_idle_spout_grow_to_20_ms_within_two_seconds_to_50_within_ten_and_to_100_within_a_minute() -> None:
    rules = pacing.RestRules()
    waits = [rules.after(emitted=False, news=False, held=False) for _ in range(1800)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.001, 0.1)
    assert 1.5 < sum(wait for wait in waits if wait < 0.02) < 2.5
    assert 9 < sum(wait for wait in waits if wait < 0.05) < 11
    assert 55 < sum(wait for wait in waits if wait < 0.1) < 65
    assert rules.after(emitted=False, news=True, held=True) == 0, "a message is read at once"
    assert rules.after(emitted=False, news=False, held=True) == 0.05, "only a message ends it"
    assert rules.after(emitted=True, news=False, held=False) == 0
    assert rules.after(emitted=False, news=False, held=False) == 0.001, "a spout that emits is called again soon"


def test_what_a_host_is_reminded_of_takes_nothing_back() -> None:
    # A host that is started again is told what was committed when its spout had opened: by then more may be, and it may
    # have heard of that. Its setup says what was planned.
    rules = pacing.PacingRules(None, 1000, 100, 1000, [(900, 5), (1000, 5)], consumed=900, now=0.0)
    load = Load(fresh=0, dirty=False, pending=10, log_end=1000)
    assert not rules.blocked(load)
    rules.step(pacing.Committed(0), 1.0)
    assert not rules.blocked(load)
    rules.step(pacing.Committed(900), 1.0)
    rules.step(pacing.Committed(500), 1.0)
    assert rules.committed == 900


@given(st.integers(1, 1000))
def test_the_tuples_of_two_micro_batches_may_wait(share: int) -> None:
    rules = pacing.PacingRules(None, 1 << 40, share, 1 << 20, (), consumed=0, now=0.0)
    assert not rules.blocked(Load(2 * share - 1, True, 0, 0))
    assert rules.blocked(Load(2 * share, True, 0, 0))


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_burst_ends_at_the_tuples_that_the_coordinator_wants(share: int, wanted: int) -> None:
    rules = pacing.PacingRules(
        None, 1 << 40, share, 1 << 20, (), consumed=0, now=0.0, pace=pacing.Pace(guessed_tuple_bytes=1)
    )
    assert fresh_of(rules) == share
    rules.step(pacing.Wanted(wanted), 1.0)
    assert fresh_of(rules) == wanted
    rules.step(pacing.Wanted(None), 2.0)
    assert fresh_of(rules) == wanted


@given(st.integers(1, 1000), st.integers(1, 1 << 20))
def test_a_burst_ends_at_the_bytes_of_a_cut_by_the_size_of_the_tuples_in_the_last_one(tuples: int, size: int) -> None:
    pace = pacing.Pace(cut_bytes=1 << 16, guessed_tuple_bytes=1 << 10)
    rules = pacing.PacingRules(None, 1 << 40, 1 << 30, 1 << 20, (), consumed=0, now=0.0, pace=pace)
    assert fresh_of(rules) == 64
    rules.step(pacing.WasCut(size, tuples, tuples * size, 0.0), 1.0)
    assert fresh_of(rules) == max(1, (1 << 16) // size)


def fresh_of(rules: pacing.PacingRules) -> int:
    (burst,) = rules.step(pacing.Turn(active=True), 1.0)
    assert isinstance(burst, pacing.Burst)
    return burst.fresh


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_what_spark_has_committed_makes_room_in_the_log(log_bytes: int, committed: int) -> None:
    end = log_bytes + committed
    # The second cut waits for a micro-batch, so that the limit of bytes holds.
    rules = pacing.PacingRules(None, log_bytes, 100, 1000, [(committed, 1), (end, 1)], consumed=0, now=0.0)
    assert rules.blocked(Load(0, False, 0, end))
    rules.step(pacing.Committed(committed), 1.0)
    assert rules.blocked(Load(0, False, 0, end)), "the log is as full as it may be"
    assert not rules.blocked(Load(0, False, 0, end - 1))


def test_instructions_of_different_types_are_different() -> None:
    assert pacing.MakeCut() == pacing.MakeCut()
    assert len({pacing.MakeCut(), pacing.SayIdle(), pacing.Report()}) == 3
    assert pacing.MakeCut() not in (pacing.Report(), pacing.SayIdle(), ())


@given(st.floats(0.01, 10.0))
def test_after_a_slow_cut_the_next_one_that_nobody_asked_for_waits(secs: float) -> None:
    rules = pacing.PacingRules(None, 1 << 40, 100, 1 << 20, (), consumed=0, now=0.0)
    rules.step(pacing.WasCut(8, 1, 8, secs), 1.0)
    ended = pacing.TurnEnded(Load(1, True, 0, 8), active=True)

    def cuts(now: float) -> bool:
        return pacing.MakeCut() in rules.step(ended, now)

    assert not cuts(1.0)
    assert not cuts(1.0 + 9.9 * secs)
    assert cuts(1.0 + max(10.1 * secs, pacing.Pace.cut_secs + 0.01))
