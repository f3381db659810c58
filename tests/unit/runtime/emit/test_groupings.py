"""Every grouping's law, for tuples and for record batches, and what an emit refuses."""

from __future__ import annotations

import copy
import datetime
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from emitting import Emitter, output_for, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import Nothing, make_worker

from storm_on_spark.api import Fields, TopologyBuilder
from storm_on_spark.api.custom_grouping import CustomStreamGrouping
from storm_on_spark.api.errors import TupleError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import Sent, TaskOutput
from storm_on_spark.runtime.tracking.ids import EdgeIds
from storm_on_spark.runtime.tracking.lineage import UNANCHORED, contributions, resolve


def shares(output: TaskOutput) -> Counter:
    return Counter({task: len(values) for task, values in targets(output).items()})


def emit(output: TaskOutput, *values: Any, stream: str = "default") -> list[int]:
    return output.emits[stream](values, UNANCHORED)


EVEN = [
    lambda b: b.shuffle_grouping("spout"),
    lambda b: b.none_grouping("spout"),
    lambda b: b.local_or_shuffle_grouping("spout"),
]


# --- shuffle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", EVEN)
def test_shuffle_is_even_in_one_execution(group: Any) -> None:
    output = output_for(group, 2)
    output.begin(1)
    for i in range(100_000):
        emit(output, "a", i)
    assert set(shares(output).values()) == {50_000}


@pytest.mark.parametrize("tuples", [1, 2, 3])
@pytest.mark.parametrize("batched", [False, True])
def test_shuffle_is_even_over_many_executions_of_few_tuples(tuples: int, batched: bool) -> None:
    output = output_for(EVEN[0], 2)
    total: Counter = Counter()
    executions = 100_000 // tuples if not batched else 10_000
    batch = pa.record_batch([["a"] * tuples, list(range(tuples))], ["word", "count"])
    no_roots, edges = np.zeros(1, np.uint64), EdgeIds("x")
    for execution in range(executions):
        output.begin(execution)
        if batched:
            output.emit_batch("default", batch, np.full(tuples, UNANCHORED))
        else:
            for i in range(tuples):
                emit(output, "a", i)
        for sealed in output.seal(lambda: no_roots, edges):
            total[sealed.box.target] += len(sealed.values)
    margin = 0.01 if not batched else 0.03
    assert all(abs(share / total.total() - 0.5) < margin for share in total.values())


def test_small_batches_are_shared_out_evenly_within_an_execution() -> None:
    output = output_for(EVEN[0], 3)
    output.begin(0)
    for size in (1, 2, 4, 1, 5, 2):
        output.emit_batch("default", pa.record_batch([["a"] * size, [1] * size], ["word", "count"]), np.full(size, -1))
    assert set(shares(output).values()) == {5}


def test_the_same_seed_gives_the_same_choices_and_another_seed_others() -> None:
    choices = []
    for seed in (1, 1, 2, 3, 4):
        output = output_for(EVEN[0], 5)
        output.begin(seed)
        choices.append([emit(output, "a", i) for i in range(7)])
    assert choices[0] == choices[1]
    assert len({str(c) for c in choices}) > 2


@pytest.mark.parametrize("group", [EVEN[0], lambda b: b.partial_key_grouping("spout", "word")])
@given(st.lists(st.text(max_size=2), min_size=1, max_size=20), st.integers(0, 10), st.integers(0, 3))
@settings(max_examples=examples(40), deadline=None)
def test_choices_go_on_as_if_what_was_taken_back_had_never_been(
    group: Any, words: list[str], cut: int, seed: int
) -> None:
    one, other = output_for(group, 3), output_for(group, 3)
    for output in (one, other):
        output.begin(seed)
    for word in words[:cut]:
        emit(one, word, 0)
        emit(other, word, 0)
    mark = one.mark()
    for word in words:
        emit(one, word * 2, 1)
    one.truncate(mark)
    assert [emit(one, word, 2) for word in words] == [emit(other, word, 2) for word in words]
    assert one.sent() == other.sent()
    assert targets(one) == targets(other)


# --- by key -----------------------------------------------------------------------------------------------------------


def test_fields_grouping_by_several_fields_uses_them_all_in_any_place() -> None:
    output = output_for(lambda b: b.fields_grouping("spout", ["c", "a"]), 8, ("a", "b", "c"))
    homes = {(a, c): emit(output, a, 0, c)[0] for a in range(10) for c in range(10)}
    assert len(set(homes.values())) == 8
    assert all(emit(output, a, 99, c) == [home] for (a, c), home in homes.items())
    assert any(homes[a, c] != homes[c, a] for a in range(10) for c in range(10))


@pytest.fixture
def small_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("key_cache", "routing", "output"):
        monkeypatch.setattr(f"storm_on_spark.runtime.emit.{module}.LIMIT", 100)
    monkeypatch.setattr("storm_on_spark.runtime.emit.key_cache.REST", 800)


@pytest.mark.usefixtures("small_lookups")
def test_many_keys_are_spread_evenly_and_the_lookup_stays_bounded() -> None:
    output = output_for(lambda b: b.fields_grouping("spout", "word"), 4)
    for i in range(20_000):
        emit(output, f"user-{i}", i)
    assert all(abs(share - 5000) < 350 for share in shares(output).values())


some_ints = st.one_of(
    st.integers(-5, 5),
    st.integers(),
    st.integers(-(2**53), 2**53),
    st.integers(2**32 - 3, 2**32 + 3),
    st.integers(0, 2**32),
)


@pytest.mark.usefixtures("small_lookups")
@given(st.lists(some_ints, min_size=1, max_size=20), st.booleans())
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_integer_goes_where_what_equals_it_goes(keys: list[int], full: bool) -> None:
    """By itself or beside another value, looked up or, where the lookup is full, worked out."""
    alone = [output_for(lambda b: b.fields_grouping("spout", "word"), 5, ("word",)) for _ in range(2)]
    beside = output_for(lambda b: b.fields_grouping("spout", "word"), 5)
    for number in range(200 if full else 0):
        alone[0].emits["default"]([f"full-{number}"], UNANCHORED)
        alone[0].emits["default"]([-number], UNANCHORED)
    for key in keys:
        home = alone[1].emits["default"]([Decimal(key)], UNANCHORED)
        assert alone[0].emits["default"]([key], UNANCHORED) == emit(beside, key, 1) == home
        assert abs(key) > 2**53 or emit(beside, float(key), 2) == home


@pytest.mark.usefixtures("small_lookups")
def test_a_full_lookup_stays_as_it_is_for_a_while_and_then_starts_anew() -> None:
    output = output_for(lambda b: b.fields_grouping("spout", "word"), 4, ("word",))
    homes = {}
    for make in (float, lambda number: f"user-{number}"):
        for number in range(2000):
            homes[make(number)] = output.emits["default"]([make(number)], UNANCHORED)
    owners = output.owners("default")
    assert owners is not None
    assert len(owners) <= 100
    assert next(iter(owners)) == "user-1600", "100 keys and 800 others: begun again four times"
    assert all(output.emits["default"]([key], UNANCHORED) == home for key, home in homes.items())


def test_partial_key_grouping_has_two_candidates_and_balances_a_skewed_key() -> None:
    output = output_for(lambda b: b.partial_key_grouping("spout", "word"), 5)
    output.begin(0)
    homes: dict[str, set[int]] = {}
    for i in range(20_000):
        word = "hot" if i % 2 else f"w{i % 97}"
        homes.setdefault(word, set()).update(emit(output, word, i))
    assert all(len(tasks) <= 2 for tasks in homes.values())
    assert len(homes["hot"]) == 2
    found = shares(output)
    assert max(found[task] for task in homes["hot"]) < 20_000 * 0.3, "half of all would go to one task by fields"
    one = output_for(lambda b: b.partial_key_grouping("spout", "word"), 1)
    assert {tuple(emit(one, f"w{i}", i)) for i in range(10)} == {tuple(emit(one, "x", 0))}


@pytest.mark.parametrize("value", [object(), [len], {"a": object()}, np.zeros(2), (1, [object()])])
@pytest.mark.parametrize("kind", ["fields_grouping", "partial_key_grouping"])
def test_a_value_that_can_not_be_grouped_by_is_refused_by_name(value: Any, kind: str) -> None:
    output = output_for(lambda b: getattr(b, kind)("spout", ["count", "word"]))
    message = r'"spout" \(task \d+\) emitted a value for field "word" of stream "default" that can\'t be grouped by: a '
    with pytest.raises(TupleError, match=message):
        emit(output, value, 1)
    assert targets(output) == {}
    assert output.sent() == {}


class Odd:
    """A value whose own code raises whatever is done with it."""

    def __hash__(self) -> int:
        raise ZeroDivisionError("odd hash")

    def __repr__(self) -> str:
        raise ZeroDivisionError("odd repr")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("fields", [["word"], ["count", "word"]])
@pytest.mark.parametrize("value", [Odd(), [Odd()], CIRCLE, pd.NA])
@pytest.mark.parametrize("kind", ["fields_grouping", "partial_key_grouping"])
def test_whatever_hashing_raises_the_field_is_named(value: Any, kind: str, fields: list[str]) -> None:
    output = output_for(lambda b: getattr(b, kind)("spout", fields))
    message = r'"spout" \(task \d+\) emitted a value for field "word" of stream "default" that can\'t be grouped by: '
    with pytest.raises(TupleError, match=message):
        emit(output, value, 1)


@pytest.mark.parametrize("fields", [["word"], ["count", "word"]])
@pytest.mark.parametrize("kind", ["fields_grouping", "partial_key_grouping"])
def test_nat_is_one_key_as_in_arrow(kind: str, fields: list[str]) -> None:
    output = output_for(lambda b: getattr(b, kind)("spout", fields))
    found = {tuple(emit(output, value, 1)) for value in (pd.NaT, None, np.timedelta64("NaT"))}
    assert len(found) == 1 if kind == "fields_grouping" else len(found) <= 2
    batch = pa.record_batch([pa.array([None], pa.duration("ns")), [1]], ["word", "count"])
    targets(output)
    output.emit_batch("default", batch, np.full(1, -1))
    assert found >= {(task,) for task in shares(output)}


@pytest.mark.parametrize("fields", [["word"], ["count", "word"]])
def test_a_column_with_a_value_that_python_has_not_is_refused_by_name(fields: list[str]) -> None:
    output = output_for(lambda b: b.fields_grouping("spout", fields))
    batch = pa.record_batch([pa.array([2**60], pa.timestamp("us")), [1]], ["word", "count"])
    with pytest.raises(TupleError, match='for field "word" of stream "default" that can\'t be grouped by: '):
        output.emit_batch("default", batch, np.full(1, -1))


KEYS = [datetime.timedelta(days=number, microseconds=number) for number in range(-20, 20)]


@pytest.mark.parametrize("fields", [["word"], ["count", "word"]])
def test_a_duration_goes_to_one_task_whatever_its_class_and_way(fields: list[str]) -> None:
    output = output_for(lambda b: b.fields_grouping("spout", fields), 4)
    homes = {key: emit(output, key, 1) for key in KEYS}
    for key, home in homes.items():
        assert emit(output, pd.Timedelta(key), 1) == emit(output, np.timedelta64(key), 1) == home
    for unit in ("us", "ns"):
        targets(output)
        batch = pa.record_batch([pa.array(KEYS, pa.duration(unit)), [1] * len(KEYS)], ["word", "count"])
        output.emit_batch("default", batch, np.full(len(KEYS), -1))
        assert shares(output) == Counter(task for home in homes.values() for task in home)


# --- the others -----------------------------------------------------------------------------------------------------


def test_two_subscriptions_each_get_the_tuple() -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Emitter({"default": ["word"]}))
    builder.set_bolt("one", Nothing(), 2).shuffle_grouping("spout")
    builder.set_bolt("two", Nothing(), 2).all_grouping("spout")
    builder.set_bolt("three", Nothing(), 2).fields_grouping("spout", "word")
    worker = make_worker(builder)
    output = TaskOutput(worker.wiring, worker.context(worker.wiring.plan.components["spout"].tasks[0]))
    assert len(emit(output, "a")) == 4
    with pytest.raises(TupleError):
        emit(output, object())
    assert output.sent() == {"default": Sent(1, 4)}
    assert sorted(v for values in targets(output).values() for v in values) == [("a",)] * 4


def test_nobody_listening() -> None:
    output = output_for(lambda b: b.shuffle_grouping("spout"), other=["x"])
    assert emit(output, 1, stream="other") == []
    assert output.sent() == {"other": Sent(1, 0)}
    assert targets(output) == {}


def test_direct_grouping_goes_where_the_emitter_says() -> None:
    output = output_for(lambda b: b.direct_grouping("spout", stream="d"), d=["x"], direct=("d",))
    tasks = output.context.component_tasks("bolt")
    output.emit_direct(tasks[1], "d", [1], UNANCHORED)
    output.emit_direct(tasks[2], "d", (2,), UNANCHORED)
    assert output.sent() == {"d": Sent(2, 2)}
    assert targets(output) == {tasks[1]: [(1,)], tasks[2]: [(2,)]}


# --- custom -----------------------------------------------------------------------------------------------------------


class Custom(CustomStreamGrouping):
    def __init__(self, choose: Callable[[list[int], Any], Any], fail_prepare: bool = False):
        self.choose, self.fail_prepare = choose, fail_prepare

    def prepare(self, context, stream, target_tasks):
        if self.fail_prepare:
            raise RuntimeError("no map")
        self.targets, self.stream = target_tasks, stream

    def choose_tasks(self, task_id, values):
        assert isinstance(values, list)
        return self.choose(self.targets, values)


def custom(choose: Any, fail_prepare: bool = False) -> TaskOutput:
    return output_for(lambda b: b.custom_grouping("spout", Custom(choose, fail_prepare)))


def test_custom_grouping_chooses_any_number_of_tasks() -> None:
    output = custom(lambda targets, values: targets[: values[1]])
    assert [len(emit(output, "a", n)) for n in (0, 1, 3)] == [0, 1, 3]
    assert output.sent() == {"default": Sent(3, 4)}
    batch = pa.record_batch([["a"] * 3, [0, 1, 3]], ["word", "count"])
    output.emit_batch("default", batch, np.full(3, -1))
    assert sum(shares(output).values()) == 8


def test_every_task_has_its_own_copy_of_a_custom_grouping() -> None:
    grouping = Custom(lambda targets, values: targets[:1])
    output = output_for(lambda b: b.custom_grouping("spout", grouping))
    emit(output, "a", 1)
    assert not hasattr(grouping, "targets")


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda t, v: [99], r"chose \[99\]; valid tasks are \[\d+, \d+, \d+\]"),
        (lambda t, v: [[1]], r"chose \[\[1\]\]; valid"),
        (lambda t, v: 1 / 0, "raised in choose_tasks: ZeroDivisionError: division by zero"),
        (lambda t, v: None, "raised in choose_tasks: TypeError"),
    ],
)
def test_errors_of_a_custom_grouping_name_it(choose: Any, message: str) -> None:
    with pytest.raises(TupleError, match=f'the custom grouping Custom of stream "default" from "spout" {message}'):
        emit(custom(choose), "a", 1)


def test_an_error_in_prepare_of_a_custom_grouping_names_it() -> None:
    with pytest.raises(TupleError, match='of stream "default" from "spout" raised in prepare: RuntimeError: no map'):
        custom(lambda t, v: [], fail_prepare=True)


# --- batches ----------------------------------------------------------------------------------------------------------


def column(values: list[Any], kind: Any = None) -> pa.Array:
    return pa.array(values, kind)


COLUMNS = [
    column(["a", "b", None, "a", "", "ü", "b"] * 20),
    column(list(range(140))),
    column([1.5, float("nan"), -0.0, 0.0, None, 2.0, 1e300] * 20),
    column([True, False, None, True, True, False, True] * 20),
    column([b"x", b"", None, b"y", b"x", b"z", b"zz"] * 20),
    column(["a", None, "b", "a", "c", None, "b"] * 20).dictionary_encode(),
    column(["a", None, "b", "a", "c", None, "b"] * 20).dictionary_encode(null_encoding="encode"),
    column([datetime.date(2020, 1, d % 7 + 1) for d in range(140)]),
    column([datetime.datetime(2020, 1, 1, d % 24, tzinfo=datetime.timezone.utc) for d in range(140)]),
    column([None] * 140),
]


@pytest.mark.parametrize("values", COLUMNS, ids=lambda c: str(c.type))
@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_a_batch_is_shared_out_by_key_as_its_rows_would_be(values: pa.Array, tasks: int) -> None:
    by_batch, by_row = (output_for(lambda b: b.fields_grouping("spout", "word"), tasks) for _ in range(2))
    numbers = pa.array(range(len(values)))
    batch = pa.record_batch([values, numbers], ["word", "count"])
    by_batch.emit_batch("default", batch, np.arange(len(values)))
    assert by_batch.sent() == {"default": Sent(len(values), len(values))}
    for word, number in zip(values.to_pylist(), numbers.to_pylist(), strict=True):
        emit(by_row, word, number)
    numbers_of = {task: [n for _, n in rows] for task, rows in targets(by_row).items()}
    assert {task: [n for _, n in rows] for task, rows in targets(by_batch).items()} == numbers_of


@pytest.mark.parametrize(
    "group",
    [
        lambda b: b.fields_grouping("spout", ["count", "word"]),
        lambda b: b.partial_key_grouping("spout", "word"),
        lambda b: b.global_grouping("spout"),
        lambda b: b.all_grouping("spout"),
        lambda b: b.shuffle_grouping("spout"),
        lambda b: b.custom_grouping("spout", Custom(lambda targets, values: [targets[values[1] % 3]])),
    ],
)
def test_the_other_groupings_agree_too(group: Any) -> None:
    by_batch, by_row = output_for(group), output_for(group)
    words = [f"w{i % 7}" for i in range(50)]
    for output in (by_batch, by_row):
        output.begin(5)
    for start in (0, 20):
        part = words[start : start + 20]
        batch = pa.record_batch([part, list(range(start, start + len(part)))], ["word", "count"])
        by_batch.emit_batch("default", batch, np.arange(len(part)))
        for i, word in enumerate(part, start):
            emit(by_row, word, i)
    assert targets(by_batch) == targets(by_row)


@pytest.mark.parametrize("tasks", [2, 20])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@settings(deadline=None, max_examples=examples(25))
@given(
    parts=st.lists(
        st.tuples(st.lists(st.one_of(st.text(max_size=2), st.none()), min_size=1, max_size=40), st.integers(1, 30)),
        min_size=1,
        max_size=4,
    )
)
def test_batches_of_texts_arrive_as_they_were(tasks: int, kind: pa.DataType, parts: list[Any]) -> None:
    """Several in one execution: with texts that repeat, which travel as numbers, and with others, and without any."""
    by_tuple = output_for(lambda b: b.fields_grouping("spout", Fields("word")), tasks)
    by_batch = output_for(lambda b: b.fields_grouping("spout", Fields("word")), tasks)
    by_batch.begin(1)
    for words, times in parts:
        column = pa.array(words * times, kind)
        by_batch.emit_batch(
            "default",
            pa.RecordBatch.from_arrays([column, pa.array(range(len(column)))], ["word", "count"]),
            np.full(len(column), UNANCHORED),
        )
        for number, word in enumerate(words * times):
            emit(by_tuple, word, number)
    arrived: dict[int, list[tuple[Any, ...]]] = {}
    for sealed in by_batch.seal(lambda: np.zeros(1, np.uint64), EdgeIds("x")):
        (header, body), _ = encode_sealed(sealed, "spout", 1, 0)
        batch = chunk.read_batch(chunk.read_lineage(header, body)[1])
        batch.validate(full=True)
        assert batch.schema.field(0) == pa.field("word", kind)
        arrived.setdefault(header.target, []).extend(tuple(row.values()) for row in batch.to_pylist())
    assert arrived == targets(by_tuple)


@pytest.mark.parametrize("grouping", ["fields_grouping", "partial_key_grouping"])
@pytest.mark.parametrize("values", [[[1], [2, 3]], [{"a": 1}, {"a": 2}]])
def test_lists_and_maps_are_grouped_by_what_they_hold(values: list[Any], grouping: str) -> None:
    one, other = (output_for(lambda b: getattr(b, grouping)("spout", "word"), 16) for _ in range(2))
    tasks = [emit(one, value, 1) for value in values]
    assert tasks == [emit(other, copy.deepcopy(value), 2) for value in values]
    other.emit_batch("default", pa.record_batch([values, [3, 3]], ["word", "count"]), np.array([0, 1]))
    if grouping == "fields_grouping":
        found = targets(other)
        for value, (task,) in zip(values, tasks, strict=True):
            assert [given for given, _ in found[task] if given == value] == [value, value]


# --- what an emit refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o: emit(o, 1), r'emitted 1 value\(s\) on stream "default", which declares 2 \(word, count\): \[1\]'),
        (lambda o: emit(o, 1, 2, 3), r"emitted 3 value\(s\)"),
        (lambda o: o.emits["default"]("ab", UNANCHORED), "emitted the text 'ab' on stream \"default\"; emit a list"),
        (
            lambda o: o.emits["nope"]([1], UNANCHORED),
            'emitted to stream "nope", which it does not declare; declared: "d", "default"',
        ),
        (lambda o: emit(o, 1, stream="d"), 'used emit on stream "d", which is a direct stream; use emit_direct'),
        (
            lambda o: o.emit_direct(1, "default", [1, 2], UNANCHORED),
            'used emit_direct on stream "default", which is not a direct stream; use emit',
        ),
        (
            lambda o: o.emit_direct(99, "d", [1], UNANCHORED),
            r'directly to task 99 on stream "d", but that task does not subscribe to it; subscribed tasks: \d',
        ),
        (lambda o: o.emit_direct(1, "d", [1, 2], UNANCHORED), r"emitted 2 value\(s\)"),
        (lambda o: o.emit_direct(1, "d", "x", UNANCHORED), "emitted the text 'x'"),
        (lambda o: o.emit_direct(1, "nope", [1], UNANCHORED), "does not declare"),
        (lambda o: o.emit_batch("nope", pa.record_batch([[1]], ["a"]), np.array([0])), "does not declare"),
        (lambda o: o.emit_batch("d", pa.record_batch([[1]], ["x"]), np.array([0])), "is a direct stream"),
        (
            lambda o: o.emit_batch("default", pa.record_batch([[1], [2]], ["count", "word"]), np.array([0])),
            'emitted a batch of columns "count", "word", not "word", "count"',
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(call: Any, message: str) -> None:
    output = output_for(
        lambda b: b.shuffle_grouping("spout").direct_grouping("spout", stream="d"), d=["x"], direct=("d",)
    )
    with pytest.raises(TupleError, match=message) as raised:
        call(output)
    assert str(raised.value).startswith('"spout" (task ')
    assert output.sent() == {}
    assert targets(output) == {}


# --- anchors --------------------------------------------------------------------------------------------------------

anchor_lists = st.lists(
    st.integers(-1, 5) | st.lists(st.integers(1, 2**63), min_size=1, max_size=3, unique=True).map(tuple)
)


@given(anchor_lists, st.booleans(), st.data())
def test_resolve_and_contributions_against_a_plain_loop(anchors: list[Any], ragged: bool, data: st.DataObject) -> None:
    root = st.integers(0, 2**63)
    if ragged:
        root = root | st.lists(st.integers(1, 2**63), min_size=2, max_size=3, unique=True).map(tuple)
    inputs = data.draw(st.lists(root, min_size=6, max_size=6))
    roots: Any = [*inputs, 0] if ragged else np.array([*inputs, 0], np.uint64)
    plain = [anchor if isinstance(anchor, tuple) else (*inputs, 0)[anchor] for anchor in anchors]
    expected = [tuple(r) if isinstance(r, tuple) else ((r,) if r else ()) for r in plain]
    found = resolve(anchors, roots)
    listed = (
        [()] * len(anchors)
        if found is None
        else [
            r if isinstance(r, tuple) else ((int(r),) if r else ())
            for r in (found if isinstance(found, list) else found.tolist())
        ]
    )
    assert listed == expected
    if found is not None:
        edges = EdgeIds("e").take(len(anchors)).ids()
        pairs = list(zip(*(part.tolist() for part in contributions(found, edges)), strict=True))
        assert pairs == [(r, e) for rs, e in zip(expected, edges.tolist(), strict=True) for r in rs]
    else:
        assert not any(expected)
