"""The instance of a task is a cache over its state: exact over all workers, attempts and rollbacks."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from lengths import examples
from stormtest import Nothing, Source, make_worker, tuples_chunk

from storm_on_spark.api import BaseBasicBolt, Fields, TopologyBuilder
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.state import BaseStatefulBolt
from storm_on_spark.plan.model import Operator
from storm_on_spark.runtime.bolts import saved
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.stage import BatchInfo
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Kind
from storm_on_spark.runtime.state import deltas
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.runtime.state.version import StateVersions
from storm_on_spark.testing.simulated.spark import Values


class Remember(BaseBasicBolt):
    """Its state depends on every tuple and their order."""

    def prepare(self, conf, context):
        self.lock = threading.Lock()
        self.history, self.counts, self.last = [], Counter(), None
        self.flag = True

    def execute(self, tup, collector):
        value = tup[0]
        with self.lock:
            self.history.append(value)
            self.counts[value % 3] += 1
        if value % 5 == 0 and hasattr(self, "flag"):
            del self.flag
        elif value % 5 == 1:
            self.flag = value
        if value % 7 == 0:
            self.late = threading.Lock()
        if value % 4 == 0:
            self.last = tup
        collector.emit([(value, len(self.history), self.last and self.last[0])])
        if value % 11 == 10:
            raise ValueError(value)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("seen"))


class RememberMore(BaseStatefulBolt):
    """The same with key-value state."""

    def prepare(self, conf, context, collector):
        self.collector, self.history = collector, []

    def init_state(self, state):
        self.state = state

    def execute(self, tup):
        value = tup[0]
        self.history.append(value)
        self.state.put(value % 3, self.state.get(value % 3, 0) + value)
        if value % 5 == 0:
            self.state.delete(value % 2)
        seen = self.state.get("seen", [])
        seen.append(value)
        self.state.put("seen", seen)
        if value % 4 == 0:
            self.state.get("seen").append(-1)
            self.state.put("seen", [*self.state.get("seen"), {"of": value}])
        self.collector.emit([(value, str(list(self.state.items())))], anchors=tup)
        self.collector.ack(tup)
        if value % 11 == 10:
            raise ValueError(value)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("seen"))


class TaskFailed(Exception):
    """A Spark task died."""


class Failing(MemoryStore):
    """State that fails after a few writes."""

    def __init__(self, values: Values, writes: int) -> None:
        super().__init__(values)
        self.writes = writes

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self.writes -= 1
        if self.writes < 0:
            raise TaskFailed
        super().put(name, value, index)


def entries_of(state: Values) -> dict[int, bytes]:
    """Entries and deltas, by number."""
    return {index: value for (name, index), value in state.items() if name == "entries"}


class Histories(RuleBasedStateMachine):
    """One stateful task on three workers against a worker that never fails, moves or forgets."""

    bolt: type = Remember

    @initialize()
    def begin(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("source", Source(default=["value"]))
        builder.set_bolt("bolt", self.bolt()).fields_grouping("source", "value")
        builder.set_bolt("reader", Nothing()).shuffle_grouping("bolt")
        spec = make_worker(builder).spec
        self.workers = [Worker(spec) for _ in range(3)]
        self.straight = Worker(spec)
        self.operator = Operator((spec.plan.stages[spec.plan.components["bolt"].stage],), exchange=True)
        (self.task,) = spec.plan.components["bolt"].tasks
        self.stream = self.straight.wiring.stream("source", "default").number
        #: Committed versions: state, and the batches that led to it.
        self.versions: list[tuple[Values, list[list[int]]]] = [({}, [])]

    def execute(self, worker: Worker, variables: MemoryStore, batch: int, values: list[int]) -> list[Any]:
        """What the bolt emitted in an attempt."""
        body = tuples_chunk(
            [(v,) for v in values], None, None, target=self.task, source=1, sequence=0, stream=self.stream
        )
        rows = list(
            execute_operator(
                worker, self.operator, [chunk.with_header(body)], BatchInfo(batch, 0), lambda task: variables
            )
        )
        emitted = []
        for _, out in rows:
            header = chunk.read_header(out)
            if header.kind == Kind.TUPLES:
                emitted += chunk.read_rows(header, chunk.read_lineage(header, out)[1])
        return emitted

    @rule(
        values=st.lists(st.integers(0, 30), min_size=1, max_size=5),
        worker=st.integers(0, 2),
        others=st.lists(
            st.tuples(st.integers(0, 2), st.lists(st.integers(0, 30), min_size=1, max_size=3), st.integers(0, 3)),
            max_size=3,
        ),
    )
    def batch(self, values: list[int], worker: int, others: list[tuple[int, list[int], int]]) -> None:
        """A batch that is committed, after attempts that were not, of other tuples, as of a fickle bolt."""
        state, batches = self.versions[-1]
        number = len(batches)
        for other, tried, writes in others:
            with contextlib.suppress(TaskFailed):
                self.execute(self.workers[other], Failing(copy.deepcopy(state), writes), number, tried)
        variables = MemoryStore(copy.deepcopy(state))
        emitted = self.execute(self.workers[worker], variables, number, values)
        self.versions.append((variables.values, [*batches, values]))
        self.emitted = emitted

    @rule(
        turns=st.lists(
            st.tuples(st.integers(0, 2), st.lists(st.integers(0, 30), min_size=1, max_size=3)), min_size=3, max_size=12
        )
    )
    def in_turn(self, turns: list[tuple[int, list[int]]]) -> None:
        """Batches that are committed at once, by one worker or another: each falls behind and catches up."""
        for worker, values in turns:
            self.batch(values, worker, [])

    @rule(back=st.integers(0, 3))
    def roll_back(self, back: int) -> None:
        """The state store goes back to an earlier version."""
        del self.versions[max(1, len(self.versions) - back) :]
        self.emitted = None

    @rule(worker=st.integers(0, 2))
    def worker_dies(self, worker: int) -> None:
        self.workers[worker] = Worker(self.workers[worker].spec)

    @rule(worker=st.integers(0, 2), values=st.lists(st.integers(0, 30), min_size=1, max_size=3))
    def speculative(self, worker: int, values: list[int]) -> None:
        """An attempt whose result nobody uses."""
        state, batches = self.versions[-1]
        self.execute(self.workers[worker], MemoryStore(copy.deepcopy(state)), len(batches), values)

    @invariant()
    def the_same_as_a_straight_run(self) -> None:
        if not hasattr(self, "versions"):
            return
        state, batches = self.versions[-1]
        straight, emitted = MemoryStore({}), None
        worker = Worker(self.straight.spec)
        for number, values in enumerate(batches):
            emitted = self.execute(worker, straight, number, values)
        assert self.content(state) == self.content(straight.values)
        if getattr(self, "emitted", None) is not None:
            assert self.emitted == emitted

    @staticmethod
    def content(state: Values) -> Any:
        if ("snapshot", 0) not in state:
            return None
        snapshot, entries = state["snapshot", 0], entries_of(state)
        for number in range(StateVersions.load(state["version", 0]).newest.deltas):
            snapshot = deltas.applied(snapshot, entries.pop(-1 - number))
        attributes = dict(read_snapshot(snapshot))
        if attributes.get("last") is not None:
            attributes["last"] = attributes["last"].values
        attributes.pop("late", None)
        values, store = StoredState(), MemoryStore(state)
        assert all(number >= 0 for number in entries), "a delta that is not needed"
        values.attach(store)
        values.load(store, len(entries))
        return attributes, dict(values.items())


class KeyValueHistories(Histories):
    """The same with key-value state."""

    bolt = RememberMore


class Heavy(Remember):
    """The same with much in its attributes that does not change."""

    def prepare(self, conf, context):
        self.ballast = list(range(3000, 9000))
        super().prepare(conf, context)


class HeavyWithKeyValues(RememberMore):
    """The same with key-value state as well."""

    def prepare(self, conf, context, collector):
        self.ballast = list(range(3000, 9000))
        super().prepare(conf, context, collector)


class DeltaHistories(Histories):
    """The same where snapshots are deltas."""

    bolt = Heavy


class KeyValueDeltaHistories(Histories):
    """The same with key-value state."""

    bolt = HeavyWithKeyValues


def test_a_snapshot_that_changes_little_is_stored_as_a_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MOST_DELTAS", 3)
    history = DeltaHistories()
    history.begin()
    wholes, sizes = [], []
    for number in range(9):
        history.batch([number], number % 3, [])
        history.the_same_as_a_straight_run()
        state = history.versions[-1][0]
        wholes.append(state["snapshot", 0])
        sizes.append(sorted(map(len, entries_of(state).values())))
    assert [len(entries) for entries in sizes] == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert max(map(max, filter(None, sizes))) < len(wholes[0]) / 8
    assert len(set(wholes)) == 3


@pytest.mark.parametrize("size", [0, 1, 16, 24, 48, 50])
def test_a_record_of_versions_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(CheckpointError, match=f"has {size} bytes, not 24 for each and one before"):
        StateVersions.load(bytes(size))


def test_a_record_of_versions_of_another_format_is_refused() -> None:
    with pytest.raises(CheckpointError, match="format version 7; this release reads 3"):
        StateVersions.load(b"\x07" + bytes(24))


TestDeltaHistories = DeltaHistories.TestCase
TestDeltaHistories.settings = settings(max_examples=examples(25), stateful_step_count=12, deadline=None)
TestKeyValueDeltaHistories = KeyValueDeltaHistories.TestCase
TestKeyValueDeltaHistories.settings = settings(max_examples=examples(15), stateful_step_count=12, deadline=None)
TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=examples(60), stateful_step_count=15, deadline=None)
TestKeyValueHistories = KeyValueHistories.TestCase
TestKeyValueHistories.settings = settings(max_examples=examples(40), stateful_step_count=15, deadline=None)
