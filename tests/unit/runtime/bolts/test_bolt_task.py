"""Executing a micro-batch: acks, fails, anchors and what is told to the acker."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import anchored, batch_input, emitted, ids, rows, solo

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BatchBolt,
    FailedException,
    Fields,
    ReportedFailedException,
)
from storm_on_spark.api.errors import ComponentError, TupleError
from storm_on_spark.api.task.base_hook import BaseTaskHook
from storm_on_spark.runtime.bolts.bolt_task import BoltTask, Execution
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import Sent
from storm_on_spark.runtime.tracking.acker import FAIL, RESET
from storm_on_spark.runtime.tracking.lineage import contributions, marked


class Bolt(BaseRichBolt):
    """A rich bolt whose `execute` each test writes itself."""

    def prepare(self, conf, context, collector):
        self.collector, self.held = collector, []

    def execute(self, tup):
        self.run(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def marks(execution: Execution) -> dict[tuple[int, int], int]:
    """What an execution says of each root, as if the ackers had to be told of all it emitted: XOR by (root, mark)."""
    found: dict[tuple[int, int], int] = {}
    sent = [
        marked(roots, 0, xors=edges)
        for sealed in execution.sealed
        if sealed.roots is not None
        for roots, edges in [contributions(sealed.roots, sealed.edges.ids())]
    ]
    for fold in [*execution.folds, *sent]:
        assert len(fold.roots) == len(fold.xors) == len(fold.marks) > 0
        for root, xor, mark in zip(fold.roots.tolist(), fold.xors.tolist(), fold.marks.tolist(), strict=True):
            found[root, mark] = found.get((root, mark), 0) ^ xor
    return found


def run(bolt: type[BaseRichBolt], *inputs: Any, **options: Any) -> Execution:
    return solo(bolt(), **options).execute(inputs, ids(), 1)


def edges_out(execution: Execution) -> list[int]:
    return [edge for sealed in execution.sealed if sealed.edges is not None for edge in sealed.edges.ids().tolist()]


def roots_out(execution: Execution) -> list[Any]:
    found: list[Any] = []
    for sealed in execution.sealed:
        found += [0] * len(sealed.values) if sealed.roots is None else list(sealed.roots)
    return [root if isinstance(root, tuple) else int(root) for root in found]


# --- rich bolts ---------------------------------------------------------------------------------------------------


def test_ack_says_the_edge_and_emits_say_theirs() -> None:
    class Pass(Bolt):
        def run(self, tup):
            self.collector.emit([tup[0] + 1], anchors=tup)
            self.collector.ack(tup)

    execution = run(Pass, rows([(1,), (2,)], [10, 20], [5, 6]))
    new = edges_out(execution)
    assert marks(execution) == {(10, 0): 5 ^ new[0], (20, 0): 6 ^ new[1]}
    assert emitted(execution.sealed) == [(2,), (3,)]
    assert roots_out(execution) == [10, 20]
    assert (execution.executed, execution.acked, execution.failed) == (2, 2, 0)
    assert execution.sent == {"default": Sent(2, 2)}


def test_a_tuple_that_is_neither_acked_nor_failed_says_nothing() -> None:
    class Forget(Bolt):
        def run(self, tup):
            self.collector.emit([0])

    execution = run(Forget, anchored([1, 2]))
    assert marks(execution) == {}
    assert (execution.acked, execution.failed) == (0, 0)


def test_fail_fails_every_root_of_the_tuple_and_settles_it() -> None:
    class Fail(Bolt):
        def run(self, tup):
            self.collector.fail(tup)
            self.collector.ack(tup)
            self.collector.fail(tup)

    execution = run(Fail, rows([(1,), (2,)], [(10, 11), 20], [5, 6]))
    assert marks(execution) == {(10, FAIL): 0, (11, FAIL): 0, (20, FAIL): 0}
    assert (execution.acked, execution.failed) == (0, 2)


def test_a_second_ack_is_ignored() -> None:
    class Twice(Bolt):
        def run(self, tup):
            self.collector.ack(tup)
            self.collector.ack(tup)

    assert marks(run(Twice, rows([(1,)], [10], [5]))) == {(10, 0): 5}


def test_multi_anchoring_joins_all_trees_and_duplicates_count_once() -> None:
    class Join(Bolt):
        def run(self, tup):
            self.held.append(tup)
            if len(self.held) == 3:
                self.collector.emit(["joined"], anchors=[*self.held, self.held[0]])
                for held in self.held:
                    self.collector.ack(held)

    execution = run(Join, rows([(1,), (2,), (3,)], [(10, 11), (11, 12), 13], [5, 6, 7]))
    (edge,) = edges_out(execution)
    assert roots_out(execution) == [(10, 11, 12, 13)]
    assert marks(execution) == {(10, 0): 5 ^ edge, (11, 0): 5 ^ 6 ^ edge, (12, 0): 6 ^ edge, (13, 0): 7 ^ edge}


def test_unanchored_emits_and_inputs_cost_nothing() -> None:
    class Pass(Bolt):
        def run(self, tup):
            self.collector.emit([1], anchors=tup)
            self.collector.emit([2], anchors=[tup])
            self.collector.ack(tup)

    execution = run(Pass, rows([(1,), (2,)]))
    assert execution.folds == []
    assert all(sealed.roots is None and sealed.edges is None for sealed in execution.sealed)
    assert execution.acked == 2


def test_anchored_and_unanchored_tuples_in_one_box() -> None:
    class Mixed(Bolt):
        def run(self, tup):
            self.collector.emit([1], anchors=tup)
            self.collector.emit([2])
            self.collector.ack(tup)

    execution = run(Mixed, rows([(1,)]), rows([(1,)], [10], [5]))
    assert roots_out(execution) == [0, 0, 10, 0]
    assert marks(execution) == {(10, 0): 5 ^ edges_out(execution)[2]}


def test_reset_timeout_marks_every_root() -> None:
    class Reset(Bolt):
        def run(self, tup):
            self.collector.reset_timeout(tup)

    assert marks(run(Reset, rows([(1,), (2,)], [(10, 11), 10], [5, 6]))) == {(10, RESET): 0, (11, RESET): 0}


@pytest.mark.parametrize(
    ("anchors", "message"),
    [
        (7, "anchors must be a tuple, several tuples or None, not 7"),
        (["x"], r"an anchor must be a Tuple .* not 'x'; values come first: emit\(\[...\], anchors=tup\)"),
    ],
)
def test_wrong_anchors_are_refused(anchors: Any, message: str) -> None:
    class Wrong(Bolt):
        def run(self, tup):
            with pytest.raises(TupleError, match=message):
                self.collector.emit([1], anchors=anchors)

    assert run(Wrong, anchored([1])).errors == []


# --- tuples that are kept for later ---------------------------------------------------------------------------------


class Pairs(Bolt):
    """Joins each two tuples; the first waits in an attribute, perhaps over many batches."""

    def run(self, tup):
        self.held.append(tup)
        if len(self.held) == 2:
            self.collector.emit([sum(held[0] for held in self.held)], anchors=self.held)
            for held in self.held:
                self.collector.ack(held)
            self.held = []


@pytest.mark.parametrize("move", [False, True])
def test_a_held_tuple_is_acked_later_here_and_in_another_worker(move: bool) -> None:
    task = solo(Pairs())
    first = task.execute([rows([(1,)], [10], [5])], ids(1), 1)
    assert marks(first) == {}
    if move:
        other = solo(Pairs())
        other.restore(task.snapshot)
        task = other
    second = task.execute([rows([(2,)], [20], [6])], ids(2), 2)
    (edge,) = edges_out(second)
    assert emitted(second.sealed) == [(3,)]
    assert roots_out(second) == [(10, 20)]
    assert marks(second) == {(10, 0): 5 ^ edge, (20, 0): 6 ^ edge}
    assert second.acked == 2
    assert task.instance.held == []


@pytest.mark.parametrize("anchored_input", [False, True])
def test_a_held_tuple_can_be_failed_and_reset_later(anchored_input: bool) -> None:
    class Later(Bolt):
        def run(self, tup):
            for held in self.held:
                self.collector.reset_timeout(held)
                self.collector.fail(held)
                self.collector.ack(held)
            self.held = [tup]

    task = solo(Later())
    roots = ([(10, 11)], [5]) if anchored_input else (None, None)
    task.execute([rows([(1,)], *roots)], ids(1), 1)
    task.restore(task.snapshot)
    later = task.execute([rows([(2,)])], ids(2), 2)
    expected = {(10, RESET): 0, (11, RESET): 0, (10, FAIL): 0, (11, FAIL): 0} if anchored_input else {}
    assert marks(later) == expected
    assert (later.acked, later.failed) == (0, 1)


def test_a_tuple_travels_by_pickle_with_values_names_and_anchors() -> None:
    class Keep(Bolt):
        def run(self, tup):
            self.held.append(tup)

    task = solo(Keep(), ["word", "count"])
    task.execute([rows([("a", 1), ("b", 2)], [10, 0], [5, 0], ["word", "count"])], ids(), 1)
    first, second = (pickle.loads(pickle.dumps(tup)) for tup in task.instance.held)
    assert (first["word"], first[1], first.values, list(first.fields)) == ("a", 1, ["a", 1], ["word", "count"])
    assert (first.source_component, first.source_stream, first.source_task) == ("source", "default", 99)
    assert (first.message_id, second.message_id) == ({10: 5}, {})


# --- outside of execute ---------------------------------------------------------------------------------------------

_LATE = r'"bolt" \(task \d+\) used its collector outside of execute; emit, ack and fail in execute'


@pytest.mark.parametrize(
    "use",
    [
        lambda bolt, tup: bolt.collector.emit([1]),
        lambda bolt, tup: bolt.collector.emit([1], tup),
        lambda bolt, tup: bolt.collector.emit([1], [tup, tup]),
        lambda bolt, tup: bolt.collector.emit_direct(1, [1], stream="direct"),
        lambda bolt, tup: bolt.collector.ack(tup),
        lambda bolt, tup: bolt.collector.fail(tup),
        lambda bolt, tup: bolt.collector.reset_timeout(tup),
    ],
    ids=["emit", "emit anchored", "emit with anchors", "emit_direct", "ack", "fail", "reset_timeout"],
)
def test_a_collector_that_is_used_between_executions_says_so_and_nothing_is_lost(use: Any) -> None:
    class Keep(Bolt):
        def run(self, tup):
            for held in self.held:
                self.collector.ack(held)
            self.held = [tup]

        def declare_output_fields(self, declarer):
            super().declare_output_fields(declarer)
            declarer.declare_stream("direct", Fields("value"), direct=True)

    task = solo(Keep())
    task.execute([anchored([1], 10)], ids(1), 1)
    with pytest.raises(TupleError, match=_LATE):
        use(task.instance, task.instance.held[0])
    second = task.execute([anchored([2], 20)], ids(2), 2)
    assert emitted(second.sealed) == []
    assert [root for root, _ in marks(second)] == [10], "the late call did not settle the tuple"


def test_errors_that_are_reported_between_executions_come_out_with_the_next() -> None:
    class Complains(Bolt):
        def prepare(self, conf, context, collector):
            super().prepare(conf, context, collector)
            collector.report_error(ValueError("in prepare"))

        def run(self, tup):
            self.collector.report_error(ValueError("in execute"))

    task = solo(Complains())

    def said(batch: int) -> list[str]:
        return [str(error).rpartition(": ")[2] for error in task.execute([anchored([1])], ids(batch), batch).errors]

    assert said(1) == ["in prepare", "in execute"]
    task.instance.collector.report_error(ValueError("in a thread"))
    assert said(2) == ["in a thread", "in execute"]


def test_a_batch_bolts_collector_refuses_late_use_too() -> None:
    class Late(BatchBolt):
        def prepare(self, conf, context, collector):
            self.collector = collector

        def execute_batch(self, batch, collector):
            """Does nothing."""

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    task = solo(Late())
    batch = pa.RecordBatch.from_pydict({"value": [1]})
    task.execute([batch_input(batch)], ids(), 1)
    with pytest.raises(TupleError, match=_LATE):
        task.instance.collector.emit(batch)
    with pytest.raises(TupleError, match=_LATE):
        task.instance.collector.fail([0])


# --- basic bolts --------------------------------------------------------------------------------------------------


class Basic(BaseBasicBolt):
    def prepare(self, conf, context):
        self.seen = []

    def execute(self, tup, collector):
        self.seen.append(tup[0])
        collector.emit([tup[0] * 2])
        if tup[0] == 3:
            raise ReportedFailedException("three")
        if tup[0] == 4:
            raise FailedException("four")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def test_a_basic_bolt_anchors_acks_and_fails_by_exception() -> None:
    task = solo(Basic())
    execution = task.execute([anchored([1, 3]), anchored([4, 5], 3)], ids(), 1)
    (a, b, c, d), edges = edges_out(execution), [anchored([1, 3]), anchored([4, 5], 3)]
    given = [int(e) for part in edges for e in part.delivery.lineage.edges]
    assert emitted(execution.sealed) == [(2,), (6,), (8,), (10,)], "what was emitted before the failure stays"
    assert marks(execution) == {
        (1, 0): given[0] ^ a,
        (2, 0): b,
        (2, FAIL): 0,
        (3, 0): c,
        (3, FAIL): 0,
        (4, 0): given[3] ^ d,
    }
    assert (execution.acked, execution.failed) == (2, 2)
    assert [error.message for error in execution.errors] == ["ReportedFailedException: three"]
    assert task.instance.seen == [1, 3, 4, 5], "a failed tuple is no poison: what it did to the bolt stays"


# --- batch bolts ----------------------------------------------------------------------------------------------------


class Batch(BatchBolt):
    def prepare(self, conf, context, collector):
        pass

    def execute_batch(self, batch, collector):
        self.run(batch, collector)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def column(*values: Any, name: str = "value") -> pa.RecordBatch:
    return pa.record_batch([pa.array(values)], names=[name])


def test_a_batch_bolt_acks_all_rows_but_the_failed_and_anchors_by_row() -> None:
    class Some(Batch):
        def run(self, batch, collector):
            collector.emit(column(1, 2, 3), parent=[2, -1, 0])
            collector.fail([1])
            collector.fail(pa.array([1]))

    first, second = (
        batch_input(column(7, 8, 9), [1, 2, 3], [11, 12, 13]),
        batch_input(column(5, 6, 7), [4, 0, 6], [14, 0, 16]),
    )
    execution = run(Some, first, second)
    e = edges_out(execution)
    assert roots_out(execution) == [3, 0, 1, 6, 0, 4]
    assert marks(execution) == {
        (1, 0): 11 ^ e[2],
        (2, FAIL): 0,
        (3, 0): 13 ^ e[0],
        (4, 0): 14 ^ e[5],
        (6, 0): 16 ^ e[3],
    }
    assert (execution.acked, execution.failed) == (4, 2), "the unanchored second row of the second batch too"
    assert execution.sent == {"default": Sent(6, 6)}


def test_without_parent_rows_are_anchored_one_to_one_or_not_at_all() -> None:
    class Two(Batch):
        def run(self, batch, collector):
            collector.emit(column(1, 2))

    execution = run(Two, batch_input(column(7, 8), [1, 2], [11, 12]), batch_input(column(9), [3], [13]))
    assert roots_out(execution) == [1, 2, 0, 0]


def test_failed_exception_fails_the_whole_batch_once() -> None:
    class Fails(Batch):
        def run(self, batch, collector):
            collector.fail([0])
            collector.emit(column(1, 2))
            raise ReportedFailedException("no")

    execution = run(Fails, batch_input(column(7, 8), [1, 2], [11, 12]))
    assert (execution.acked, execution.failed) == (0, 2)
    assert len(execution.errors) == 1
    assert roots_out(execution) == [1, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.emit(column(1), parent=[0, 1]), "parent has 2 entries for 1 rows on stream 'default'"),
        (lambda c: c.emit(column(1), parent=[2]), "parent names row 2 .* of an input batch of 2 rows"),
        (lambda c: c.emit(column(1), parent=[-2]), "least -2"),
        (lambda c: c.emit(pa.record_batch([[1], [2]], names=["a", "b"])), "which declares 1"),
        (lambda c: c.emit(column(1, name="other")), '"other", not "value"'),
        (lambda c: c.fail([2]), "fail names row 2 of an input batch of 2 rows"),
        (lambda c: c.fail([-1]), "fail names row -1"),
    ],
)
def test_what_does_not_fit_the_batch_is_refused(call: Any, message: str) -> None:
    class Wrong(Batch):
        def run(self, batch, collector):
            with pytest.raises(TupleError, match=message):
                call(collector)

    assert run(Wrong, batch_input(column(7, 8), [1, 2], [11, 12])).errors == []


def test_empty_batches_do_not_travel() -> None:
    class Empty(Batch):
        def run(self, batch, collector):
            collector.emit(batch.slice(0, 0))

    execution = run(Empty, batch_input(column(7, 8)))
    assert execution.sealed == []


def test_batches_whose_types_differ_travel_in_order() -> None:
    class Changing(Batch):
        def run(self, batch, collector):
            for part in ([1, 2], [None], ["text"], ["more"], [1.5]):
                collector.emit(column(*part))

    execution = run(Changing, batch_input(column(7), [1], [11]))
    assert emitted(execution.sealed) == [(1,), (2,), (None,), ("text",), ("more",), (1.5,)]
    assert roots_out(execution) == [0, 0, 1, 1, 1, 1]


# --- errors and hooks -------------------------------------------------------------------------------------------------


def test_fail_fast_ends_the_execution_with_the_error() -> None:
    class Raises(Bolt):
        def run(self, tup):
            raise ValueError("bad")

    with pytest.raises(ComponentError, match=r'component "bolt" \(task \d+\) failed in execute: ValueError: bad'):
        run(Raises, anchored([1]), conf={"topology.fail.fast": True})


def test_errors_in_prepare_and_in_pickling_name_the_phase() -> None:
    class Unprepared(Bolt):
        def prepare(self, conf, context, collector):
            raise OSError("no connection")

    with pytest.raises(ComponentError, match="failed in prepare: OSError: no connection"):
        solo(Unprepared())

    class Unpicklable(Bolt):
        def __getstate__(self):
            return {"f": lambda: 1} if hasattr(self, "held") else {}

    with pytest.raises(ComponentError, match="failed in snapshot"):
        solo(Unpicklable())


def test_reported_errors_come_out_once() -> None:
    class Reports(Bolt):
        def run(self, tup):
            self.collector.report_error(KeyError("k"))
            self.collector.ack(tup)

    execution = run(Reports, anchored([1, 2]))
    assert [error.message for error in execution.errors] == ["KeyError: 'k'"] * 2
    assert execution.acked == 2


class Raising(Bolt):
    def run(self, tup):
        if tup[0] % 2:
            raise ValueError("odd")
        if tup[0] > 5:
            raise ValueError("odd")  # as the other, and on another line
        self.collector.report_error(KeyError(tup[0]))
        self.held.append(tup)


class RaisingBasic(BaseBasicBolt):
    def execute(self, tup, collector):
        Raising.run(SimpleNamespace(collector=collector, held=[]), tup)


@pytest.mark.parametrize("bolt", [Raising, RaisingBasic])
def test_an_error_says_what_was_executed(bolt: type) -> None:
    errors = run(bolt, anchored([1, 2, 3]), anchored([4, 5, 6, 8], 4)).errors
    # Of equal errors the first is told with its input: to look for more would take time.
    assert [(error.message, error.input, error.own_trace != "") for error in errors] == [
        ("ValueError: odd", "(1,)", True),
        ("ValueError: odd", "", False),
        ("ValueError: odd", "", False),
        ("ValueError: odd", "(6,)", True),
        ("ValueError: odd", "", False),
        ("KeyError: 2", "(2,)", True),
        ("KeyError: 4", "(4,)", True),
    ]
    assert pickle.loads(pickle.dumps(errors[0])).input == "(1,)"


def test_an_error_of_a_batch_bolt_says_how_many_rows_it_executed() -> None:
    class Raises(BatchBolt):
        def prepare(self, conf, context, collector):
            collector.report_error(KeyError("nothing in hand"))

        def execute_batch(self, batch, collector):
            if batch.num_rows == 3:
                raise ValueError("three")
            raise ReportedFailedException

    execution = run(Raises, batch_input(column(1, 2, 3), [1] * 3, [1] * 3), batch_input(column(4), [1], [1]))
    assert [error.input for error in execution.errors] == [
        "a batch of 3 rows: value",
        "",
        "a batch of 1 row: value",
    ]


class Hook(BaseTaskHook):
    def __init__(self):
        self.heard = []

    def emit(self, info):
        self.heard.append(f"emit {info.values}")

    def bolt_execute(self, info):
        self.heard.append("execute")
        if info.tuple[0] == 2:
            raise RuntimeError("hook")

    def bolt_ack(self, info):
        self.heard.append("ack")

    def bolt_fail(self, info):
        self.heard.append("fail")


def test_hooks_hear_of_everything_and_may_be_poison() -> None:
    class Pass(Bolt):
        def prepare(self, conf, context, collector):
            super().prepare(conf, context, collector)
            self.hook = Hook()
            context.add_task_hook(self.hook)

        def run(self, tup):
            self.collector.emit([tup[0]], anchors=tup)
            (self.collector.ack if tup[0] == 1 else self.collector.fail)(tup)

    task = solo(Pass(), stateless=True)
    task.execute([anchored([1])], ids(), 1)
    assert task.instance.hook.heard == ["emit [1]", "ack", "execute"]
    execution = task.execute([anchored([2])], ids(), 1)
    assert [error.message for error in execution.errors] == ["RuntimeError: hook"]
    assert (execution.failed, emitted(execution.sealed)) == (1, [])


# --- determinism ----------------------------------------------------------------------------------------------------


class Fan(Bolt):
    def run(self, tup):
        for i in range(tup[0] % 4):
            self.collector.emit([i], anchors=[*self.held, tup] if tup[0] % 3 else tup)
        self.held = [tup]
        self.collector.ack(tup)


def chunks_of(task: BoltTask, values: list[int], batch: int) -> list[bytes]:
    execution = task.execute([anchored(values, 1 + 100 * batch)], ids(batch), batch)
    bodies = [encode_sealed(sealed, "bolt", task.task, n)[0][1] for n, sealed in enumerate(execution.sealed)]
    return bodies + [b"".join(map(np.ndarray.tobytes, fold)) for fold in execution.folds]


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=20), min_size=1, max_size=4))
def test_the_same_seed_and_inputs_give_the_same_chunks_in_any_worker(batches: list[list[int]]) -> None:
    one, other = solo(Fan(), readers=3), None
    for batch, values in enumerate(batches):
        before = one.snapshot
        first = chunks_of(one, values, batch)
        other = solo(Fan(), readers=3)
        other.restore(before)
        assert chunks_of(other, values, batch) == first
        assert other.instance.held[0].message_id == one.instance.held[0].message_id


# --- the short ways of the hot path ---------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [BaseRichBolt, BaseBasicBolt])
def test_tuples_that_a_bolt_keeps_stay_as_they_are(base: type) -> None:
    class Keep(base):  # type: ignore[valid-type,misc]
        def prepare(self, *given):
            self.held, self.last = [], None

        def execute(self, tup, *collector):
            if tup[0] % 3 == 0:
                self.held.append(tup)
            elif tup[0] % 3 == 1:
                self.last = {"tuple": tup, "then": self.last}
            # Others are let go, and the runtime may use them again.

    task = solo(Keep())
    values = list(range(100))
    task.execute([anchored(values[:40]), anchored(values[40:], 1000)], ids(), 1)
    held, last = task.instance.held, task.instance.last
    assert [tup.values for tup in held] == [[value] for value in values if value % 3 == 0]
    assert len(set(map(id, held))) == len(held)
    assert [tuple(tup.message_id) for tup in held[13:15]] == [(40,), (1002,)]
    linked = []
    while last:
        linked.append(last["tuple"][0])
        last = last["then"]
    assert linked == [value for value in reversed(values) if value % 3 == 1]


def test_a_tuple_that_is_used_again_can_be_acked_again() -> None:
    class Acks(Bolt):
        def run(self, tup):
            self.collector.ack(tup)

    assert run(Acks, anchored([1, 2, 3])).acked == 3


class Word(str):
    """A text of its own type."""


def test_values_by_which_a_stream_is_grouped_arrive_with_their_types() -> None:
    values = ["a", Word("a"), "b", 1, True, 1.0, b"a", None, ("a",), np.str_("b"), "a", Word("c"), "c"]

    class Say(BaseBasicBolt):
        def execute(self, tup, collector):
            for value in values:
                assert len(collector.emit([value])) == 1
                collector.emit(iter([value]), "default")
                collector.emit(iter([value]))

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    task = solo(Say(), readers=3, by="value")
    execution = task.execute([anchored([1], 10)], ids(), 1)
    found = [(type(value), value) for (value,) in emitted(execution.sealed)]
    assert sorted(map(repr, found)) == sorted(repr((type(value), value)) for value in values for _ in range(3))
    assert execution.sent == {"default": Sent(3 * len(values), 3 * len(values))}
    homes: dict[object, set[int]] = {}
    for sealed in execution.sealed:
        for (value,) in sealed.values:
            homes.setdefault(value, set()).add(sealed.box.target)
    assert all(len(tasks) == 1 for tasks in homes.values()), "equal values go to one task, whatever their type"


@pytest.mark.parametrize("values", ["a", "ab", [], ["a", "b"], 7, None, [object()]])
def test_what_does_not_fit_a_stream_of_one_text_is_refused(values: Any) -> None:
    class Say(BaseBasicBolt):
        def execute(self, tup, collector):
            collector.emit(values)

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    execution = solo(Say(), by="value").execute([anchored([1], 10)], ids(), 1)
    assert execution.failed == 1
    assert emitted(execution.sealed) == []


def test_an_emit_that_a_basic_bolt_has_kept_is_refused_between_executions() -> None:
    class Keep(BaseBasicBolt):
        def prepare(self, conf, context):
            self.emits = []

        def execute(self, tup, collector):
            self.emits.append(collector.emit)
            self.collector = collector
            collector.emit(["now"])

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    task = solo(Keep(), by="value", stateless=True)
    assert emitted(task.execute([anchored([1, 2])], ids(1), 1).sealed) == [("now",), ("now",)]
    for emit in [*task.instance.emits, task.instance.collector.emit]:
        with pytest.raises(TupleError, match=_LATE):
            emit(["late"])
    assert emitted(task.execute([anchored([3])], ids(2), 2).sealed) == [("now",)]


def test_hooks_hear_of_emits_that_could_take_the_short_way() -> None:
    class Hook(BaseTaskHook):
        def __init__(self):
            self.heard = []

        def emit(self, info):
            self.heard.append((list(info.values), info.stream))

        def bolt_execute(self, info):
            self.heard.append(info.tuple.values)

    class Say(BaseBasicBolt):
        def prepare(self, conf, context):
            self.hook = Hook()
            context.add_task_hook(self.hook)

        def execute(self, tup, collector):
            collector.emit(["word"])

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("value"))

    task = solo(Say(), by="value", stateless=True)
    task.execute([anchored([1])], ids(), 1)
    assert task.instance.hook.heard == [(["word"], "default"), [1]]
