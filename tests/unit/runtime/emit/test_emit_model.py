"""What comes out of a task's output is what a plain model of the groupings says, values and order and anchors."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emitting import output_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples
from stormtest import anchored, solo

from storm_on_spark.api import BaseBasicBolt, Fields
from storm_on_spark.api.errors import TupleError
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.emit.encode import encode_sealed
from storm_on_spark.runtime.emit.output import TaskOutput
from storm_on_spark.runtime.tracking.ids import EdgeIds
from storm_on_spark.runtime.values.hashing import stable_hash

TASKS = 3


class Text(str):
    """Equal to a text, and of another type."""

    __slots__ = ()


class Number(int):
    """Equal to a number, and of another type."""


texts = st.one_of(
    st.sampled_from(["a", "b", "", "storm", "\0", "a\0b", "\ud800", "long" * 100]),
    st.text(st.characters(codec=None), max_size=3),
)
numbers = st.one_of(
    st.sampled_from([0, 1, -1, True, False, 0.0, -0.0, 1.0, float("nan"), 2**32, 2**64 + 1, -(2**70), 1 << 3000]),
    st.integers(),
    st.floats(),
)
keys = st.one_of(
    texts,
    numbers,
    st.sampled_from([None, b"a", ("a", 1), ("a", True), np.str_("a"), np.int64(1), np.float64(-0.0)]),
    st.sampled_from([Text("a"), Number(1)]),
)
changeable = st.one_of(st.lists(numbers, max_size=2), st.dictionaries(texts, numbers, max_size=1))


def outcome(output: TaskOutput) -> dict[int, list[tuple[Any, ...]]]:
    """What each task gets, read from chunks: all values with their types, and the root."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for sequence, sealed in enumerate(output.seal(lambda: np.arange(1, 1002, dtype=np.uint64), EdgeIds("x"))):
        (header, body), _ = encode_sealed(sealed, "spout", 1, sequence)
        lineage, payload, _ = chunk.read_lineage(header, body)
        assert lineage is not None
        if header.kind == chunk.Kind.ARROW:
            batch = chunk.read_batch(payload)
            rows: Any = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        else:
            rows = list(chunk.read_rows(header, payload))
            assert list(map(shown, sealed.values)) == list(map(shown, rows)), "a receiver in this process gets the same"
        assert header.target not in found, "one chunk for a target"
        roots = np.asarray(lineage.roots).tolist()
        found[header.target] = [(root, *shown(row)) for root, row in zip(roots, rows, strict=True)]
    return found


def shown(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values with their types; `==` would take 1, True and 1.0 for one value, and nan for many."""
    return tuple((type(value), repr(value)) for value in row)


def owner(targets: list[int], key: tuple[Any, ...]) -> int:
    """The task of a key by fields grouping."""
    hashes = [stable_hash(value) for value in key]
    return targets[(hashes[0] if len(hashes) == 1 else stable_hash(tuple(hashes))) % len(targets)]


FIELDS = ("word", "count", "third")
shapes = st.sampled_from([(1, (0,)), (2, (0,)), (2, (1,)), (2, (1, 0)), (3, (0, 2))])


@given(st.data(), shapes, st.booleans())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_fields_grouping(data: st.DataObject, shape: tuple[int, tuple[int, ...]], small: bool) -> None:
    width, by = shape
    output = output_for(lambda b: b.fields_grouping("spout", [FIELDS[at] for at in by]), TASKS, FIELDS[:width])
    targets = sorted(output.context.component_tasks("bolt"))
    column = [keys if at in by else st.one_of(keys, changeable) for at in range(width)]
    rows = data.draw(st.lists(st.tuples(*column), min_size=1, max_size=30))
    rows *= 1 if small else 20  # long columns are packed in other ways
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for anchor, row in enumerate(rows):
        task = owner(targets, tuple(row[at] for at in by))
        expected.setdefault(task, []).append((anchor + 1, *shown(row)))
        given_values = copy.deepcopy(row)
        assert output.emits["default"](data.draw(st.sampled_from([list, tuple, iter]))(given_values), anchor) == [task]
        for value in given_values:
            if isinstance(value, (list, dict)):
                value.clear()  # what the receiver gets is what was emitted
    assert outcome(output) == expected


@given(st.lists(st.tuples(keys, st.one_of(keys, changeable)), min_size=1, max_size=30), st.integers(1, 2))
@settings(max_examples=examples(30), deadline=None)
def test_groupings_without_a_key(rows: list[tuple[Any, ...]], width: int) -> None:
    everyone = output_for(lambda b: b.all_grouping("spout"), TASKS, FIELDS[:width])
    lowest = output_for(lambda b: b.global_grouping("spout"), TASKS, FIELDS[:width])
    in_turn = output_for(lambda b: b.shuffle_grouping("spout"), TASKS, FIELDS[:width])
    targets = sorted(everyone.context.component_tasks("bolt"))
    rows = [row[:width] for row in rows]
    wanted = [(anchor + 1, *shown(row)) for anchor, row in enumerate(rows)]
    turns: dict[int, list[tuple[Any, ...]]] = {}
    for anchor, row in enumerate(rows):
        assert sorted(everyone.emits["default"](row, anchor)) == targets
        assert lowest.emits["default"](row, anchor) == targets[:1]
        (task,) = in_turn.emits["default"](row, anchor)
        turns.setdefault(task, []).append(wanted[anchor])
    assert outcome(everyone) == dict.fromkeys(targets, wanted)
    assert outcome(lowest) == {targets[0]: wanted}
    assert outcome(in_turn) == turns
    counts = [len(turns.get(target, [])) for target in targets]
    assert max(counts) - min(counts) <= 1


class Replay(BaseBasicBolt):
    """Emits the row that its input names, in one of the forms in which rows are given."""

    def __init__(self, rows: list[tuple[tuple[Any, ...], Any]], fields: tuple[str, ...]) -> None:
        self.rows, self.fields = rows, fields

    def execute(self, tup, collector) -> None:
        row, form = self.rows[tup[0]]
        collector.emit(form(row))
        collector.emit(form(row), stream="default")

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields(*self.fields))


@given(st.lists(st.tuples(st.tuples(keys, keys), st.sampled_from([list, tuple, iter])), min_size=1), st.integers(1, 2))
@settings(max_examples=examples(40), deadline=None)
def test_a_basic_bolt_emits_as_any_other(given_rows: list[tuple[tuple[Any, ...], Any]], width: int) -> None:
    rows = [(row[:width], form) for row, form in given_rows]
    task = solo(Replay(rows, FIELDS[:width]), readers=TASKS, by="word")
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for at, (row, _) in enumerate(rows):
        expected.setdefault(owner(list(range(TASKS)), row[:1]), []).extend([(at + 1, *shown(row))] * 2)
    execution = task.execute([anchored(range(len(rows)))], EdgeIds("x"), 0)
    assert execution.errors == []
    found = sorted(execution.sealed, key=lambda sealed: sealed.box.target)
    got = [
        [(root, *shown(row)) for root, row in zip(np.asarray(sealed.roots).tolist(), sealed.values, strict=True)]
        for sealed in found
    ]
    assert got == [expected[place] for place in sorted(expected)]


@pytest.mark.parametrize(
    "equal", [["a", Text("a"), np.str_("a")], [1, True, 1.0, Number(1)], [0.0, -0.0, 0, False], ["a", b"a", ("a",)]]
)
@pytest.mark.parametrize("width", [1, 2])
def test_equal_keys_stay_what_they_are(equal: list[Any], width: int) -> None:
    for order in itertools.permutations(equal):
        output = output_for(lambda b: b.fields_grouping("spout", "word"), TASKS, FIELDS[:width])
        task = solo(Replay([((key, key)[:width], list) for key in order], FIELDS[:width]), by="word")
        for anchor, key in enumerate(order * 2):
            output.emits["default"]((key, key)[:width], anchor)
        found = sorted(row for rows in outcome(output).values() for row in rows)
        assert found == [(anchor + 1, *shown((key, key)[:width])) for anchor, key in enumerate(order * 2)]
        (sealed,) = task.execute([anchored(range(len(order)))], EdgeIds("x"), 0).sealed
        assert list(map(shown, sealed.values)) == [shown((key, key)[:width]) for key in order for _ in range(2)]


columns = st.sampled_from([texts.filter(lambda t: t.isprintable()), st.integers(-5, 5), st.floats(), st.none()])


@given(st.data(), columns)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_rows_of_a_batch_go_where_tuples_go(data: st.DataObject, kind: st.SearchStrategy[Any]) -> None:
    values = data.draw(st.lists(st.one_of(kind, st.none()), min_size=1, max_size=30)) * data.draw(
        st.sampled_from([1, 20])
    )
    output = output_for(lambda b: b.fields_grouping("spout", "word"), TASKS, ("word",))
    batch = pa.RecordBatch.from_arrays([pa.array(values)], ["word"])
    output.emit_batch("default", batch, np.arange(len(values)))
    by_batch = outcome(output)
    for anchor, value in enumerate(values):
        output.emits["default"]([value], anchor)
    assert by_batch == outcome(output)


@given(st.lists(st.tuples(keys, keys), min_size=1, max_size=20), st.data(), st.integers(1, 2))
@settings(max_examples=examples(30), deadline=None)
def test_what_is_truncated_was_never_emitted(rows: list[tuple[Any, ...]], data: st.DataObject, width: int) -> None:
    rows = [row[:width] for row in rows]
    outputs = [output_for(lambda b: b.fields_grouping("spout", "word"), TASKS, FIELDS[:width]) for _ in range(2)]
    kept = data.draw(st.integers(0, len(rows)))
    for number, output in enumerate(outputs):
        for anchor, row in enumerate(rows[:kept]):
            output.emits["default"](row, anchor)
        if number:
            mark = output.mark()
            for anchor, row in enumerate(rows[kept:]):
                output.emits["default"](row, anchor)
            output.truncate(mark)
    assert outcome(outputs[0]) == outcome(outputs[1])


@pytest.mark.parametrize("width", [1, 2])
def test_a_refused_tuple_leaves_nothing(width: int) -> None:
    output = output_for(lambda b: b.fields_grouping("spout", "word"), TASKS, FIELDS[:width])
    for wrong in ([object()] * width, ["a"] * (width + 1), "a" * width, []):
        with pytest.raises(TupleError):
            output.emits["default"](wrong, 0)
    assert outcome(output) == {}
