"""A tuple that can't be executed leaves no trace but its fail and one error."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import anchored, batch_input, ids, rows, solo

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BatchBolt, Fields
from storm_on_spark.api.state import BaseStatefulBolt
from storm_on_spark.runtime.bolts.bolt_task import BoltTask, Execution, Kept
from storm_on_spark.runtime.bolts.inputs import Input
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.runtime.tracking.acker import FAIL


class Basic(BaseBasicBolt):
    """Counts, emits before and after it may raise."""

    def prepare(self, conf, context):
        self.counts, self.log = Counter(), []

    def execute(self, tup, collector):
        self.counts[tup[0] % 3] += 1
        self.log.append(tup[0])
        collector.emit([("first", tup[0], self.counts[tup[0] % 3])])
        if tup[1]:
            self.log.clear()
            collector.report_error(KeyError("reported by a tuple that never was"))
            raise ValueError(tup[0])
        collector.emit([("second", tup[0], len(self.log))])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


class Rich(BaseRichBolt):
    """Holds tuples back, joins and acks them later."""

    def prepare(self, conf, context, collector):
        self.collector, self.held, self.sum = collector, [], 0

    def execute(self, tup):
        collector = self.collector
        self.held.append(tup)
        self.sum += tup[0]
        collector.reset_timeout(tup)
        if tup[1]:
            for held in self.held:
                collector.ack(held)
            collector.emit(["lost"], anchors=self.held)
            self.held = ["broken"]
            raise ValueError(tup[0])
        if len(self.held) >= 3:
            collector.emit([("joined", self.sum)], anchors=self.held[:2])
            collector.ack(self.held[0])
            collector.fail(self.held[1])
            del self.held[:2]
        elif tup[0] % 2:
            collector.emit([("alone", tup[0])])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


class Stateful(BaseStatefulBolt):
    def prepare(self, conf, context, collector):
        self.collector, self.seen = collector, 0

    def init_state(self, state):
        self.state = state

    def execute(self, tup):
        self.seen += 1
        key = tup[0] % 4
        self.state.put(key, self.state.get(key, 0) + 1)
        seen = self.state.get("seen", [])
        seen.append({"n": [tup[0]]})
        self.state.put("seen", seen)
        self.state.get("seen")[0]["n"].append(tup[0])
        if tup[0] % 5 == 0:
            self.state.delete(key)
        if tup[1]:
            raise ValueError(tup[0])
        self.collector.emit([(key, self.state.get(key), self.seen)], anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


@dataclass
class Told:
    """All that an execution leaves behind; roots, not edge ids, which depend on the number of emitted tuples."""

    state: Any
    emitted: list[list[tuple[Any, Any]]]
    acked: Counter = field(default_factory=Counter)
    failed: Counter = field(default_factory=Counter)


def told(task: BoltTask, execution: Execution, without: set[int]) -> Told:
    boxes = []
    for sealed in execution.sealed:
        values = sealed.values.to_pylist() if isinstance(sealed.values, pa.RecordBatch) else sealed.values
        roots = [0] * len(values) if sealed.roots is None else list(sealed.roots)
        sets = [set(root) if isinstance(root, tuple) else {int(root)} for root in roots]
        boxes.append([(sealed.box.target, *pair) for pair in zip(values, sets, strict=True)])
    result = Told(_plain(task), boxes)
    for fold in execution.folds:
        for root, mark in zip(fold.roots.tolist(), fold.marks.tolist(), strict=True):
            if root not in without:
                (result.failed if mark & FAIL else result.acked)[root, mark] += 1
    return result


def _plain(task: BoltTask) -> Any:
    state = {} if task.snapshot is None else dict(read_snapshot(task.snapshot))
    if "held" in state:
        state["held"] = [(tup.values, tup.message_id, pickle.dumps(tup)) for tup in state["held"]]
    if task.state is not None:
        state["kv"] = dict(task.state.items())
        task.state.commit(MemoryStore(), 0)
    return state


tuples = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=25)


def split(values: list[tuple[int, bool]], seed: int) -> list[list[tuple[int, bool]]]:
    """Cuts a list into pieces at random places."""
    chance, parts = random.Random(seed), [[]]
    for value in values:
        if parts[-1] and chance.random() < 0.3:
            parts.append([])
        parts[-1].append(value)
    return parts


def inputs_of(values: list[tuple[int, bool]], seed: int, *, keep_poison: bool) -> tuple[list[Input], set[int]]:
    """Inputs with a root for each position, in pieces; poison tuples left out or in."""
    inputs, poison, first = [], set(), 1
    for part in split(values, seed):
        kept = [(i, v) for i, v in enumerate(part, first) if keep_poison or not v[1]]
        poison |= {i for i, v in enumerate(part, first) if v[1]}
        if kept:
            inputs.append(rows([v for _, v in kept], [i for i, _ in kept], [1000 + i for i, _ in kept], ["n", "bad"]))
        first += len(part)
    return inputs, poison


@pytest.mark.parametrize("bolt", [Basic, Rich, Stateful])
@settings(max_examples=examples(60), deadline=None)
@given(before=tuples, values=tuples, seed=st.integers(0, 1000))
def test_poison_tuples_leave_state_output_and_acks_as_if_they_never_came(
    bolt: type, before: list[tuple[int, bool]], values: list[tuple[int, bool]], seed: int
) -> None:
    one, other = (solo(bolt(), ["n", "bad"], readers=3) for _ in range(2))
    start = [(n, False) for n, _ in before]
    kept: Kept | None = None
    for task in (other, one):
        task.execute(inputs_of(start, 0, keep_poison=True)[0], ids(0), 0)
        if task.state is not None:
            store = MemoryStore()
            written = task.state.commit(store, 0)
            kept = Kept(store, 0 if written is None else written.entries)
    inputs, poison = inputs_of(values, seed, keep_poison=True)
    with_poison = one.execute(inputs, ids(1), 1, kept)
    without = other.execute(inputs_of(values, seed, keep_poison=False)[0], ids(1), 1)
    # A Rich bolt may hold tuples from before, under the same roots as new ones.
    expected = told(other, without, set())
    found = told(one, with_poison, set())
    for root in poison:
        found.failed[root, FAIL] -= 1
    assert found.state == expected.state
    assert found.emitted == expected.emitted
    assert found.acked == expected.acked
    assert +found.failed == +expected.failed
    assert with_poison.failed == without.failed + len(poison)
    assert with_poison.acked == without.acked
    assert sorted(error.message for error in with_poison.errors) == sorted(
        f"ValueError: {n}" for n, bad in values if bad
    )


@settings(max_examples=examples(30), deadline=None)
@given(values=tuples, seed=st.integers(0, 1000))
def test_the_same_for_a_stateless_bolt(values: list[tuple[int, bool]], seed: int) -> None:
    class Stateless(BaseBasicBolt):
        def execute(self, tup, collector):
            collector.emit([("a", tup[0])])
            if tup[1]:
                raise ValueError(tup[0])
            collector.emit([("b", tup[0])])

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    one, other = (solo(Stateless(), ["n", "bad"], readers=2, stateless=True) for _ in range(2))
    inputs, poison = inputs_of(values, seed, keep_poison=True)
    with_poison = one.execute(inputs, ids(1), 1)
    without = other.execute(inputs_of(values, seed, keep_poison=False)[0], ids(1), 1)
    assert told(one, with_poison, poison).emitted == told(other, without, set()).emitted
    assert with_poison.failed == len(poison)
    assert with_poison.sent == without.sent


class Batches(BatchBolt):
    def prepare(self, conf, context, collector):
        self.sum = 0

    def execute_batch(self, batch, collector):
        values = batch["n"].to_pylist()
        self.sum += sum(values)
        collector.emit(pa.record_batch([pa.array([self.sum] * len(values))], ["value"]))
        if any(batch["bad"].to_pylist()):
            raise ValueError(self.sum)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


@settings(max_examples=examples(40), deadline=None)
@given(values=tuples, seed=st.integers(0, 1000))
def test_a_batch_that_raises_is_poison_as_a_whole(values: list[tuple[int, bool]], seed: int) -> None:
    parts, first, inputs, good = split(values, seed), 1, [], []
    poison: set[int] = set()
    for part in parts:
        batch = pa.record_batch([pa.array([n for n, _ in part]), pa.array([bad for _, bad in part])], ["n", "bad"])
        roots = list(range(first, first + len(part)))
        inputs.append(batch_input(batch, roots, roots))
        if any(bad for _, bad in part):
            poison |= set(roots)
        else:
            good.append(batch_input(batch, roots, roots))
        first += len(part)
    one, other = (solo(Batches(), ["n", "bad"], readers=2) for _ in range(2))
    with_poison, without = one.execute(inputs, ids(1), 1), other.execute(good, ids(1), 1)
    found, expected = told(one, with_poison, poison), told(other, without, set())
    assert (found.state, found.emitted, found.acked) == (expected.state, expected.emitted, expected.acked)
    assert (with_poison.failed, with_poison.acked) == (len(poison), without.acked)
    assert len(with_poison.errors) == len(inputs) - len(good)


def test_an_empty_batch_that_raises_does_not_go_round_for_ever() -> None:
    class Raises(Batches):
        def execute_batch(self, batch, collector):
            raise ValueError(batch.num_rows)

    empty = batch_input(pa.record_batch([pa.array([], pa.int64()), pa.array([], pa.bool_())], ["n", "bad"]))
    execution = solo(Raises(), ["n", "bad"]).execute([empty], ids(), 1)
    assert execution.errors == []


class Fickle(BaseBasicBolt):
    """Raises at random, not always at the same tuple."""

    chance = random.Random(0)

    def prepare(self, conf, context):
        self.seen = []

    def execute(self, tup, collector):
        self.seen.append(tup[0])
        if self.chance.random() < 0.3:
            raise ValueError(tup[0])
        collector.emit([tup[0]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


@pytest.mark.parametrize("seed", range(40))
def test_a_tuple_is_either_executed_or_poison_also_if_the_bolt_is_fickle(seed: int) -> None:
    task = solo(Fickle())
    type(task.instance).chance.seed(seed)
    execution = task.execute([anchored(range(20)), anchored(range(20, 40), 21)], ids(), 1)
    poison = sorted(int(error.message.removeprefix("ValueError: ")) for error in execution.errors)
    good = [n for n in range(40) if n not in poison]
    assert len(set(poison)) == len(poison) == execution.failed
    assert task.instance.seen == good
    assert [v for sealed in execution.sealed for (v,) in sealed.values] == good
    assert execution.acked == len(good)


class EveryOther(Basic):
    executed: ClassVar[list[int]] = []

    def execute(self, tup, collector):
        self.executed.append(tup[0])
        if tup[0] % 2:
            raise ValueError
        collector.emit([tup[0]])


def test_many_poison_tuples_cost_little() -> None:
    EveryOther.executed.clear()
    execution = solo(EveryOther()).execute([anchored(range(4000))], ids(), 1)
    assert (execution.failed, execution.acked) == (2000, 2000)
    assert len(EveryOther.executed) <= 2 * 4000
