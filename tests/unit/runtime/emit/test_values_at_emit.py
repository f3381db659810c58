"""A tuple's values are what they were when `emit` was called, whatever anybody does with them afterwards.

Random programs change what they have emitted and what they have received, and raise after that. The oracle is the same
program in plain Python, with a deep copy at each emit.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import FakeHost, make_worker

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BatchBolt,
    BatchSpout,
    Fields,
    TopologyBuilder,
)
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


class Event:
    """A user's own class, which can be changed, and pickles itself in its own way."""

    def __init__(self, *items: Any):
        self.items = list(items)

    def __reduce__(self):
        return Event, tuple(self.items)


class Point(NamedTuple):
    x: Any
    y: Any


START = [
    lambda n: [n],
    lambda n: {"n": n, "more": [n]},
    lambda n: {n},
    lambda n: Event(n, [n]),
    lambda n: Point(n, [n]),
    lambda n: (n, ({"deep": [n]},)),
    lambda n: bytearray([n]),
    lambda n: np.array([n]),
    lambda n: n,
    lambda n: str(n),
    lambda n: Point(n, "constant"),
]
"""What a spout emits beside its number."""


def change(value: Any, mark: int) -> None:
    """Changes a value in place, as deep as one can get."""
    if isinstance(value, (list, bytearray)):
        value.append(mark)
    elif isinstance(value, dict):
        value["changed"] = mark
        for item in list(value.values()):
            change(item, mark)
    elif isinstance(value, set):
        value.add(mark)
    elif isinstance(value, Event):
        value.items.append(mark)
        change(value.items[1:2], mark)
        change(value.items[1] if len(value.items) > 1 else None, mark)
    elif isinstance(value, np.ndarray):
        value += mark
    elif isinstance(value, tuple):
        for item in value:
            change(item, mark)


def look(values: Any) -> str:
    """What a receiver sees: the values, and whether two of them are one object."""
    number, one, other = values
    return f"{number} {shown(one)} {shown(other)} {one is other}"


def shown(value: Any) -> str:
    """The `repr` of a value with its sets in order: equal sets may list their items in different orders."""
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(shown, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown(key)}: {shown(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, Event):
        return f"Event{shown(value.items)}"
    return repr(value)


OPS = ("grow", "clear", "change input", "emit buffer", "emit input", "emit both", "emit wrapped", "emit again")


def perform(ops: list[str], buffer: list[Any], values: Any, emit: Any) -> None:
    """One execution of a program. `emit` is called with (number, one, other)."""
    number, one, other = values
    last: Any = None
    for step, op in enumerate(ops):
        if op == "grow":
            buffer.append([number, step])
        elif op == "clear":
            buffer.clear()
        elif op == "change input":
            change(one, 50 + step)
        elif op == "emit buffer":
            last = buffer
            emit((number, buffer, "text"))
        elif op == "emit input":
            last = one
            emit((number, one, other))
        elif op == "emit both":
            last = one
            emit((number, one, one))
        elif op == "emit wrapped":
            last = [one, buffer]
            emit((number, last, one))
        elif last is not None:
            change(last, 90 + step)
            emit((number, last, last))
    change(one, 9)
    change(other, 8)


class Spout(BaseRichSpout):
    def __init__(self, kinds: list[int]):
        self.kinds = kinds

    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        if not self.exhausted():
            number, self.next = self.next, self.next + 1
            value = START[self.kinds[number]](number)
            message_id = [number]
            self.collector.emit([number, value, value], message_id=message_id)
            message_id.append("changed")
            change(value, 77)

    def ack(self, message_id):
        assert len(message_id) == 1

    fail = ack

    def exhausted(self):
        return self.next == len(self.kinds)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "one", "other"))


class Program(BaseRichBolt):
    def __init__(self, ops: list[str], poison: set[int]):
        self.ops, self.poison = ops, poison

    def prepare(self, conf, context, collector):
        self.collector, self.buffer = collector, []

    def execute(self, tup):
        perform(self.ops, self.buffer, tuple(tup), lambda row: self.collector.emit(list(row), tup))
        if tup["n"] in self.poison:
            raise ValueError(tup["n"])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "one", "other"))


class Fused(BaseBasicBolt):
    """Without state, so that it runs in the process of its sender and shares what that has emitted."""

    stateless = True

    def __init__(self, ops: list[str], poison: set[int]):
        self.ops, self.poison = ops, poison

    def execute(self, tup, collector):
        perform(self.ops, [], tuple(tup), lambda row: collector.emit(list(row)))
        if tup["n"] in self.poison:
            raise ValueError(tup["n"])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "one", "other"))


class Seen(BaseBasicBolt):
    """Writes down what it sees, then changes it."""

    def prepare(self, conf, context):
        self.seen: list[str] = []

    def execute(self, tup, collector):
        self.seen.append(look(tuple(tup)))
        change(tup["one"], 3)
        change(tup["other"], 4)


KINDS = {"program": Program, "fused": Fused}


def oracle(kinds: list[int], chain: list[tuple[str, list[str], set[int]]]) -> Iterator[str]:
    """What the last component sees, in order."""

    def source() -> Iterator[Any]:
        for number, kind in enumerate(kinds):
            value = START[kind](number)
            yield number, value, value

    def behind(rows: Iterator[Any], kind: str, ops: list[str], poison: set[int]) -> Iterator[Any]:
        buffer: list[Any] = []
        for row in rows:
            sent: list[Any] = []

            def emit(values: Any, sent: list[Any] = sent) -> None:
                sent.append(copy.deepcopy(values))

            if row[0] not in poison:
                perform(ops, buffer if kind == "program" else [], copy.deepcopy(row), emit)
                yield from sent

    rows = source()
    for step in chain:
        rows = behind(rows, *step)
    for row in rows:
        yield look(row)


programs = st.lists(st.sampled_from(OPS), min_size=1, max_size=6)
poisons = st.sets(st.integers(0, 9), max_size=3)
chains = st.lists(st.tuples(st.sampled_from(list(KINDS)), programs, poisons), min_size=1, max_size=3)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(st.integers(0, len(START) - 1), min_size=1, max_size=10),
    chain=chains,
    partitions=st.sampled_from([1, 2]),
    calls=st.sampled_from([1, 4, 20]),
    seed=st.integers(0, 100),
)
@example(  # what ends as {93, 5} in the topology and as {5, 93} in the oracle: the same set
    kinds=[0, 0, 0, 0, 0, 2],
    chain=[("program", ["grow", "grow", "emit input", "emit again"], set()), ("program", ["emit input"], set())],
    partitions=1,
    calls=1,
    seed=0,
)
@example(  # the state of the last component is a snapshot and deltas
    kinds=[0, 5, 3, 5, 3, 0, 0, 0, 0, 0],
    chain=[
        ("program", ["grow", "emit input", "emit again", "grow", "grow", "grow"], {0, 1}),
        ("program", ["emit both", "emit input", "emit input", "emit wrapped", "emit input", "change input"], set()),
        ("program", ["emit both", "emit input", "emit again", "emit wrapped", "emit input", "change input"], set()),
    ],
    partitions=2,
    calls=1,
    seed=64,
)
def test_random_programs(
    kinds: list[int], chain: list[tuple[str, list[str], set[int]]], partitions: int, calls: int, seed: int
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Spout(kinds))
    before = "spout"
    for index, (kind, ops, poison) in enumerate(chain):
        # Two of each: what one does to its input is nothing to the other.
        for twin in "ab":
            builder.set_bolt(f"bolt{index}{twin}", KINDS[kind](ops, poison)).shuffle_grouping(before)
        before = f"bolt{index}b"
    builder.set_bolt("seen", Seen()).global_grouping(before)
    FakeHost.calls = calls
    with tempfile.TemporaryDirectory() as folder:
        worker = make_worker(builder, {"topology.fail.fast": False}, partitions)
        cluster = SimulatedSpark(worker.spec, Path(folder), Random(seed), retries=0.1)
        cluster.start()
        while not cluster.coordinator.completed.is_set():
            cluster.clock.advance(1)
            cluster.step()
        assert not cluster.failures
        found = state_of(cluster, "seen").get("seen", [])
        assert found == list(oracle(kinds, chain))
        for host in cluster.hosts:
            host.stop()


def state_of(cluster: SimulatedSpark, component: str) -> dict[str, Any]:
    (task,) = cluster.spec.plan.components[component].tasks
    return cluster.attributes(task) or {}


def ran(folder: Path, builder: TopologyBuilder, partitions: int = 1) -> SimulatedSpark:
    worker = make_worker(builder, {"topology.fail.fast": False}, partitions)
    cluster = SimulatedSpark(worker.spec, folder, Random(1))
    cluster.start()
    while not cluster.coordinator.completed.is_set():
        cluster.clock.advance(1)
        cluster.step()
    assert not cluster.failures
    return cluster


def test_the_programs_have_receivers_in_the_same_process() -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Spout([0]))
    builder.set_bolt("bolt", Fused([], set())).shuffle_grouping("spout")
    builder.set_bolt("seen", Seen()).global_grouping("bolt")
    edges = make_worker(builder).spec.plan.edges
    assert {edge.kind for edge in edges} >= {EdgeKind.LOCAL}


# --- columns ----------------------------------------------------------------------------------------------------------


class Views(BatchSpout):
    """Emits views of arrays that it writes to again, as columns, as a dictionary and as ids."""

    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_batch(self):
        if self.exhausted():
            return
        numbers, ids = np.arange(4) + 10 * self.next, np.arange(4) + 10 * self.next
        texts = pa.DictionaryArray.from_arrays(pa.array(np.array([0, 1, 0, 1])), pa.array(numbers))
        batch = pa.record_batch([pa.array(numbers), texts], ["n", "d"])
        self.collector.emit(batch, pa.array(ids) if self.next % 2 else ids)
        numbers[:], ids[:] = -1, -1
        self.next += 1

    def ack_batch(self, ids):
        assert min(ids.to_pylist()) >= 0

    def exhausted(self):
        return self.next == 3

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "d"))


class Again(BatchBolt):
    """Does the same behind it."""

    stateless = True

    def execute_batch(self, batch, collector):
        numbers = batch["n"].to_numpy().copy()
        collector.emit(pa.record_batch([pa.array(numbers), batch["d"]], ["n", "d"]))
        numbers[:] = -2

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "d"))


class Rows(BaseBasicBolt):
    def prepare(self, conf, context):
        self.rows: list[tuple[int, int]] = []

    def execute(self, tup, collector):
        self.rows.append(tuple(tup))


@pytest.mark.parametrize("group", ["global_grouping", "all_grouping", "shuffle_grouping"])
@pytest.mark.parametrize("partitions", [1, 2])
def test_record_batches_are_no_views(tmp_path: Path, group: str, partitions: int) -> None:
    builder = TopologyBuilder()
    builder.set_spout("views", Views())
    getattr(builder.set_bolt("again", Again()), group)("views")
    getattr(builder.set_bolt("first", Rows()), group)("views")
    getattr(builder.set_bolt("second", Rows()), group)("again")
    cluster = ran(tmp_path, builder, partitions)
    expected = [(10 * batch + row, 10 * batch + row % 2) for batch in range(3) for row in range(4)]
    for component in ("first", "second"):
        assert sorted(state_of(cluster, component)["rows"]) == expected, component


class Lists(BatchSpout):
    def open(self, conf, context, collector):
        self.collector, self.done = collector, False

    def next_batch(self):
        if not self.done:
            self.done = True
            self.collector.emit(pa.record_batch([[0, 1, 2], [[0], [1], [2]]], ["n", "items"]), [0, 1, 2])

    def exhausted(self):
        return self.done

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "items"))


class Total(BaseBasicBolt):
    def prepare(self, conf, context):
        self.total = 0

    def execute(self, tup, collector):
        tup["items"].append(100)
        self.total += len(tup["items"])
        if tup["n"] == 2:
            raise ValueError("poison")


def test_lists_out_of_columns_are_new_when_a_batch_runs_again(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lists", Lists())
    builder.set_bolt("total", Total()).global_grouping("lists")
    assert state_of(ran(tmp_path, builder), "total")["total"] == 4


# --- what can't be copied ---------------------------------------------------------------------------------------------


class Generators(BaseBasicBolt):
    stateless = True

    def execute(self, tup, collector):
        collector.emit([tup["n"], (item for item in range(3)), [tup["n"]]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "one", "other"))


class Consumer(BaseBasicBolt):
    stateless = True

    def execute(self, tup, collector):
        collector.emit([tup["n"], list(tup["one"]), tup["other"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "one", "other"))


def test_what_can_not_be_pickled_goes_to_a_bolt_in_the_same_process(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Spout([8]))
    builder.set_bolt("generators", Generators()).shuffle_grouping("spout")
    builder.set_bolt("consumer", Consumer()).shuffle_grouping("generators")
    builder.set_bolt("seen", Seen()).global_grouping("consumer")
    assert state_of(ran(tmp_path, builder, 2), "seen")["seen"] == ["0 [0, 1, 2] [0] False"]
