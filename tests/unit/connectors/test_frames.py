"""Bolts that the driver writes, without Spark: what they take, what they fail, and what they hand over."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

from storm_on_spark import ConfigError, SinkContext
from storm_on_spark.connectors.frames import ConsoleBolt, ForeachBatchBolt, MemoryBolt
from storm_on_spark.connectors.sinks import Columns
from storm_on_spark.testing import BoltTester, make_tick_tuple, make_tuple

COLUMNS = {"word": "string", "count": "long"}


class FrameMaker:
    """What a bolt needs of a session; the table itself stands for the DataFrame."""

    def createDataFrame(self, table):
        return table


def written_by(*parts):
    found = []
    bolt = ForeachBatchBolt(COLUMNS, lambda frame, micro_batch: found.append((frame.to_pylist(), micro_batch)))
    bolt.write(parts, SinkContext(FrameMaker(), "words-1/out", 7))
    return found


def test_the_tables_of_all_tasks_become_one_frame_with_the_number_of_the_micro_batch():
    handed = []
    for words in (["a", "b"], ["c"]):
        tester = BoltTester(ForeachBatchBolt(COLUMNS, print))
        tester.execute(*[make_tuple([word, 1], ["word", "count"]) for word in words], make_tick_tuple(1.0))
        assert len(tester.collector.acked) == len(words) + 1
        handed.append(tester.bolt.take_written())
        assert tester.bolt.take_written() == b""
    rows = [{"word": word, "count": 1} for word in "abc"]
    assert written_by(*handed) == [(rows, 7)]


def test_tuples_that_do_not_fit_fail_with_a_reason_and_their_neighbours_are_written():
    tester = BoltTester(ForeachBatchBolt(COLUMNS, print))
    good, other, lacking = (
        make_tuple(["a", 1], ["word", "count"]),
        make_tuple(["b", "many"], ["word", "count"]),
        make_tuple(["c"], ["word"]),
    )
    tester.execute(good, other, lacking)
    assert [tup["word"] for tup in tester.collector.acked] == ["a"]
    assert sorted(tup["word"] for tup in tester.collector.failed) == ["b", "c"]
    reasons = [str(error) for error in tester.collector.errors]
    assert len(reasons) == 2
    assert 'no field "count"' in reasons[0]
    assert "doesn't fit in its columns" in reasons[1]
    assert "('b', 'many')" in reasons[1]
    assert written_by(tester.bolt.take_written()) == [([{"word": "a", "count": 1}], 7)]


def test_a_micro_batch_without_a_row_that_fits_hands_nothing_over():
    tester = BoltTester(ForeachBatchBolt(COLUMNS, print))
    tester.execute(make_tuple([1, 1], ["word", "count"]))
    assert tester.bolt.take_written() == b""
    assert len(tester.collector.failed) == 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", "ü"),
        ("binary", b"\0"),
        ("boolean", True),
        ("byte", -128),
        ("short", 32767),
        ("int", -(2**31)),
        ("long", 2**63 - 1),
        ("float", 0.5),
        ("double", 0.1),
        ("date", datetime.date(2026, 2, 28)),
        ("timestamp", datetime.datetime(2026, 2, 28, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)),
        ("decimal(5,2)", decimal.Decimal("123.45")),
        ("array<long>", [1, None]),
    ],
)
def test_a_value_of_each_type_comes_back(kind, value):
    found = Columns({"value": kind}).table([(value,), (None,)]).to_pylist()
    assert found == [{"value": value}, {"value": None}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("long", 1.5),
        ("int", np.float32(0.5)),
        ("long", float("nan")),
        ("byte", float("inf")),
        ("array<long>", [1, 1.5]),
        ("long", decimal.Decimal("1.5")),
        ("long", decimal.Decimal("NaN")),
    ],
)
def test_a_fraction_is_not_cut_off(kind, value):
    with pytest.raises(ValueError, match="is not a whole number"):
        Columns({"value": kind}).table([(None,), (value,)])


def test_a_whole_number_of_another_type_is_one():
    assert Columns({"value": "long"}).table([(2.0,), (1,)]).to_pylist() == [{"value": 2}, {"value": 1}]


@pytest.mark.parametrize(
    "types",
    [
        {},
        [],
        "word",
        {"": "string"},
        {1: "string"},
        {"a": "text"},
        {"a": None},
        {"a": "decimal(39,0)"},
        {"a": "decimal(2,3)"},
        {"a": "array<array<int>>"},
        {"word": "string", "Word": "string"},
    ],
)
def test_columns_that_make_no_sense_are_refused(types):
    with pytest.raises(ConfigError, match="column"):
        Columns(types)


@pytest.mark.parametrize("view", ["", "a b", "1st", None])
def test_a_view_has_a_name(view):
    with pytest.raises(ConfigError, match="a view is named by letters"):
        MemoryBolt(view, COLUMNS)


@pytest.mark.parametrize("rows", [0, True, "10"])
@pytest.mark.parametrize("bolt", [ConsoleBolt, lambda columns, rows: MemoryBolt("words", columns, rows)])
def test_rows_are_a_number(bolt, rows):
    with pytest.raises(ConfigError, match="rows are a whole number"):
        bolt(COLUMNS, rows)


def test_a_view_keeps_the_last_rows_and_is_empty_at_each_start():
    shown = []

    class View:
        def __init__(self, table):
            self.table = table

        def createOrReplaceTempView(self, name):
            shown.append((name, self.table["count"].to_pylist()))

    class Session:
        createDataFrame = View

    bolt = MemoryBolt("words", COLUMNS, rows=3)
    for _ in range(2):
        bolt.open_sink(SinkContext(Session(), "words-1/out"))
        for micro_batch in range(2):
            rows = [("a", 2 * micro_batch + more) for more in range(2)]
            # The session of a micro-batch is another one.
            bolt.write_table(bolt.columns.table(rows), SinkContext(None, "words-1/out", micro_batch))
    assert shown == [("words", counts) for counts in ([], [0, 1], [1, 2, 3])] * 2
