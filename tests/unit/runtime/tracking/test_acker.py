"""The acker against a transcription of Storm's, message by message."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lengths import examples

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.tracking.acker import (
    ACKED,
    FAIL,
    FAILED,
    INIT,
    RESET,
    TIMED_OUT,
    AckerState,
    Contribution,
    Outcome,
)

U64 = st.integers(1, 2**64 - 1)


def contribution(*entries: tuple[int, int, int], period: int = 0) -> Contribution:
    """A contribution of (root, xor, mark)s."""
    roots, xors, marks = zip(*entries, strict=True) if entries else ((), (), ())
    return Contribution(np.array(roots, np.uint64), np.array(xors, np.uint64), np.array(marks, np.uint8), period)


def told(outcome: Outcome) -> dict[int, int]:
    """What an outcome says, by root; no root may occur twice."""
    roots = outcome.roots.tolist()
    assert len(set(roots)) == len(roots)
    return dict(zip(roots, outcome.codes.tolist(), strict=True))


# --- Storm, transcribed -------------------------------------------------------------------------------------


class RotatingMap:
    """`org.apache.storm.utils.RotatingMap`: what was put in period p is gone after `buckets` rotations."""

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        self.values: dict[int, object] = {}
        self.put_in: dict[int, int] = {}

    def put(self, key: int, value: object, period: int) -> None:
        self.values[key] = value
        self.put_in[key] = period

    def get(self, key: int):
        return self.values.get(key)

    def remove(self, key: int):
        self.put_in.pop(key, None)
        return self.values.pop(key, None)

    def rotate_to(self, period: int) -> list[int]:
        dead = [key for key, put_in in self.put_in.items() if period >= put_in + self.buckets]
        for key in dead:
            self.remove(key)
        return dead


@dataclass
class AckObject:
    val: int = 0
    spout: bool = False
    failed: bool = False


class Storm:
    """`org.apache.storm.daemon.Acker` with the spout's own map of pending messages beside it.

    Storm's spout forgets a message after two rotations, the acker after three.
    """

    def __init__(self) -> None:
        self.acker = RotatingMap(3)
        self.spout = RotatingMap(2)
        self.told: dict[int, int] = {}

    def emit(self, root: int, period: int) -> None:
        self.spout.put(root, True, period)

    def execute(self, stream: str, root: int, value: int, period: int) -> None:
        curr = self.acker.get(root)
        reset = False
        if stream == "init":
            if curr is None:
                curr = AckObject()
                self.acker.put(root, curr, period)
            curr.val ^= value
            curr.spout = True
        elif stream == "ack":
            if curr is None:
                curr = AckObject()
                self.acker.put(root, curr, period)
            curr.val ^= value
        elif stream == "fail":
            curr = curr or AckObject()
            curr.failed = True
            self.acker.put(root, curr, period)
        else:
            reset = True
            curr = curr or AckObject()
            self.acker.put(root, curr, period)
        if not curr.spout:
            return
        if curr.val == 0:
            self.acker.remove(root)
            self._tell(root, ACKED)
        elif curr.failed:
            self.acker.remove(root)
            self._tell(root, FAILED)
        elif reset and self.spout.get(root) is not None:
            self.spout.put(root, True, period)

    def tick(self, period: int) -> None:
        for root in self.spout.rotate_to(period):
            self._end(root, TIMED_OUT)
        self.acker.rotate_to(period)

    def _tell(self, root: int, code: int) -> None:
        # The spout ignores what it no longer waits for.
        if self.spout.remove(root) is not None:
            self._end(root, code)

    def _end(self, root: int, code: int) -> None:
        assert root not in self.told
        self.told[root] = code


# --- random trees, run by both --------------------------------------------------------------------------------


@dataclass
class Tuple:
    """A tuple under way. Storm draws an edge id for each of its anchors, we draw one for the tuple."""

    edge: int
    storm: dict[int, int] = field(default_factory=dict)
    #: Storm's `ackVal`: edges of what was anchored to this tuple, sent when it is acked.
    children: int = 0


class AckerAgreesWithStorm(RuleBasedStateMachine):
    """Spouts emit and bolts execute at random; batches end at random, and the state is read back at random."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        # Edge ids must look random, which values that Hypothesis draws and shrinks don't.
        self.random = Random(seed)
        self.state = AckerState()
        self.storm = Storm()
        self.period = 0
        self.told: dict[int, int] = {}
        self.live: list[Tuple] = []
        self.emitted: list[int] = []
        #: What this batch brings: for us (root, xor, mark, period), for Storm (stream, root, value).
        self.ours: list[tuple[int, int, int, int]] = []
        self.messages: list[tuple[str, int, int]] = []
        #: Inits that come in a later batch than the acks.
        self.delayed: list[tuple[int, int, int, int]] = []

    def fresh(self) -> int:
        return self.random.getrandbits(64) or 1

    @rule(edges=st.integers(0, 3), late=st.booleans(), waited=st.sampled_from([0, 0, 0, 1, 2, 3]))
    def spout_emits(self, edges: int, late: bool, waited: int) -> None:
        """Emits a message that waited some periods in the spout log; or acks overtake it on the way to the acker."""
        root = len(self.emitted) + 1
        self.emitted.append(root)
        tuples = [Tuple(self.fresh(), {root: self.fresh()}) for _ in range(edges)]
        self.live += tuples
        ours = storms = 0
        for tup in tuples:
            ours ^= tup.edge
            storms ^= tup.storm[root]
        if late:
            self.delayed.append((root, ours, storms, self.period))
        else:
            self.bring((root, ours, storms, self.period - waited))

    def bring(self, init: tuple[int, int, int, int]) -> None:
        root, ours, storms, period = init
        self.storm.emit(root, period)
        self.ours.append((root, ours, INIT, period))
        self.messages.append(("init", root, storms))

    @precondition(lambda self: self.delayed)
    @rule()
    def delayed_init_arrives(self) -> None:
        self.bring(self.delayed.pop(self.random.randrange(len(self.delayed))))

    @precondition(lambda self: self.live)
    @rule(children=st.integers(0, 3), others=st.integers(0, 2), again=st.booleans(), end=st.sampled_from("aaafh"))
    def bolt_executes(self, children: int, others: int, again: bool, end: str) -> None:
        """Emits children, anchored to several tuples, some of them twice; then acks, fails or holds the tuple."""
        tup = self.live.pop(self.random.randrange(len(self.live)))
        for _ in range(children):
            anchors = [tup, *self.random.sample(self.live, min(others, len(self.live)))]
            anchors += [tup] * again
            child = Tuple(self.fresh())
            for anchor in anchors:  # as BoltOutputCollectorImpl.boltEmit
                edge = self.fresh()
                anchor.children ^= edge
                for root in anchor.storm:
                    child.storm[root] = child.storm.get(root, 0) ^ edge
            self.ours += [(root, child.edge, 0, 0) for root in child.storm]
            self.live.append(child)
        if end == "a":
            self.ack(tup)
        elif end == "f":
            self.ours += [(root, 0, FAIL, 0) for root in tup.storm]
            self.messages += [("fail", root, 0) for root in tup.storm]
        else:
            self.live.append(tup)

    def ack(self, tup: Tuple) -> None:
        self.ours += [(root, tup.edge, 0, 0) for root in tup.storm]
        # TupleImpl.getAckVal XORed with the tuple's own id for the root
        self.messages += [("ack", root, tup.children ^ edge) for root, edge in tup.storm.items()]

    @precondition(lambda self: self.live)
    @rule()
    def bolt_resets_timeout(self) -> None:
        tup = self.random.choice(self.live)
        self.ours += [(root, 0, RESET, 0) for root in tup.storm]
        self.messages += [("reset", root, 0) for root in tup.storm]

    @rule(periods=st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3]), reload=st.booleans(), parts=st.integers(1, 4))
    def batch_ends(self, periods: int, reload: bool, parts: int) -> None:
        self.period += periods
        for init in [init for init in self.delayed if init[3] < self.period]:
            self.delayed.remove(init)
            self.bring(init)
        if reload:
            self.state = AckerState.load(self.state.dump(self.state.period), timeout_ms=1)
        self.random.shuffle(self.ours)
        split: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for root, xor, mark, period in self.ours:
            split.setdefault((self.random.randrange(parts), period if mark == INIT else 0), []).append(
                (root, xor, mark)
            )
        outcome = told(
            self.state.apply([contribution(*part, period=period) for (_, period), part in split.items()], self.period)
        )
        for root, code in outcome.items():
            assert root not in self.told, "a root ended twice"
            self.told[root] = code
        # Within a batch a reset counts as the last message; what is said before a tick arrives before it.
        self.random.shuffle(self.messages)
        for stream, root, value in sorted(self.messages, key=lambda m: m[0] == "reset"):
            self.storm.execute(stream, root, value, self.period)
        self.storm.tick(self.period)
        self.ours, self.messages = [], []
        assert self.told == self.storm.told

    @invariant()
    def state_is_small(self) -> None:
        if hasattr(self, "state") and len(self.state) > 1:
            assert len(self.state.dump(self.period)) <= 24 * len(self.state)

    def teardown(self) -> None:
        """Whatever is acked by then or not, everything ends, and nothing is left."""
        if not hasattr(self, "state"):
            return
        for init in self.delayed:
            self.bring(init)
        self.delayed = []
        for tup in self.live:
            if self.random.random() < 0.8:
                self.ack(tup)
        self.batch_ends(0, True, 2)
        for _ in range(4):
            self.batch_ends(1, False, 1)
        assert set(self.told) == set(self.emitted)
        assert len(self.state) == 0
        assert self.state.dump(self.period) == b""


TestAckerAgreesWithStorm = AckerAgreesWithStorm.TestCase
TestAckerAgreesWithStorm.settings = settings(max_examples=examples(300), stateful_step_count=40, deadline=None)


# --- what the machine does not reach ---------------------------------------------------------------------------


@given(emitted=st.integers(0, 10**7), later=st.lists(st.integers(1, 50_000), min_size=1, max_size=60))
def test_a_root_times_out_between_t_and_2t(emitted: int, later: list[int]) -> None:
    timeout = 30_000
    state = AckerState()
    state.apply([contribution((1, 5, INIT), period=emitted // timeout)], emitted // timeout)
    now = before = emitted
    for step in later:
        before, now = now, now + step
        if told(state.apply([], now // timeout)):
            break
    else:
        assert now - emitted < 2 * timeout
        return
    # It ended with the first batch whose clock is past the boundary, so the one before was not past 2T.
    assert now - emitted > timeout
    assert before - emitted < 2 * timeout


@given(
    emitted=st.integers(0, 10**9),
    down=st.integers(0, 60_000),
    timeouts=st.tuples(*[st.integers(1, 600).map(lambda seconds: 1000 * seconds)] * 2),
    steps=st.lists(st.integers(1, 400_000), min_size=1, max_size=40),
)
def test_after_a_restart_with_another_timeout_old_and_new_roots_time_out_by_the_new_one(
    emitted: int, down: int, timeouts: tuple[int, int], steps: list[int]
) -> None:
    before, after = timeouts
    state = AckerState()
    state.apply([contribution((1, 5, INIT), period=emitted // before)], emitted // before)
    state = AckerState.load(state.dump(emitted), after)
    start = now = emitted + down
    ended = told(state.apply([contribution((2, 6, INIT), period=now // after)], now // after))
    assert 2 not in ended, "a new root is as young as it is"
    for step in steps:
        earlier, now = now, now + step
        outcome = told(state.apply([], now // after))
        for root in outcome:
            born = emitted if root == 1 else start
            assert now - born > after
            assert earlier - born < 2 * after
        ended.update(outcome)
    assert all(root in ended or now - born < 2 * after for root, born in ((1, emitted), (2, start)))


def test_with_timeouts_off_nothing_fails_but_leftovers_of_ended_roots_go() -> None:
    state = AckerState(timeouts=False)
    state.apply([contribution((1, 5, INIT), (2, 6, INIT), (2, 0, FAIL))], 0)
    assert told(state.apply([contribution((2, 6, 0), (2, 7, 0))], 1)) == {}
    assert state.roots.tolist() == [1, 2]
    for period in range(2, 50):
        assert told(state.apply([], period)) == {}
    assert state.roots.tolist() == [1]
    assert told(state.apply([contribution((1, 5, 0))], 1000)) == {1: ACKED}


def test_ack_and_fail_before_init() -> None:
    state = AckerState()
    assert told(state.apply([contribution((1, 5, 0), (2, 0, FAIL))], 0)) == {}
    assert told(state.apply([contribution((1, 5, INIT), (2, 6, INIT))], 0)) == {1: ACKED, 2: FAILED}
    assert len(state) == 0


def test_a_root_that_nobody_received_is_acked_at_once() -> None:
    assert told(AckerState().apply([contribution((1, 0, INIT))], 0)) == {1: ACKED}


def test_the_clock_never_runs_backwards() -> None:
    state = AckerState()
    state.apply([contribution((1, 5, INIT), period=4)], 4)
    assert told(state.apply([], 2)) == {}
    assert told(state.apply([], 5)) == {}
    assert told(state.apply([], 6)) == {1: TIMED_OUT}


@given(st.lists(st.tuples(U64, U64), unique_by=lambda e: e[0], min_size=2), st.integers(0, 2**62))
def test_dump_and_load(pending: list[tuple[int, int]], period: int) -> None:
    state = AckerState()
    state.apply([contribution(*((root, xor, INIT) for root, xor in pending), period=period)], period)
    data = state.dump(period)
    assert len(data) <= 24 * len(pending)
    copy = AckerState.load(data, timeout_ms=1)
    assert copy.dump(period) == data
    assert told(copy.apply([contribution(*((r, x, 0) for r, x in pending))], period)) == {
        root: ACKED for root, _ in pending
    }


def test_an_unknown_version_is_refused_with_a_sentence() -> None:
    state = AckerState()
    state.apply([contribution((1, 5, INIT))], 0)
    data = state.dump(0)
    with pytest.raises(CheckpointError, match=r"the state of an acker has format version 9; this release reads 2"):
        AckerState.load(struct.pack("<B", 9) + data[1:], timeout_ms=1)


def test_a_state_that_is_cut_short_is_refused() -> None:
    state = AckerState()
    state.apply([contribution((1, 5, INIT), (2, 6, INIT))], 0)
    data = state.dump(0)
    for length in range(1, len(data)):
        with pytest.raises(CheckpointError, match="acker state"):
            AckerState.load(data[:length], timeout_ms=1)
