"""Windows over record batches hold what windows of tuples hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_on_spark import BaseWindowedBolt, CheckpointError, Count, Duration, Fields, InvalidTopologyError, TupleError
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.windowing import BatchWindowedBolt, CountOf, DistinctOf, MaxOf, MeanOf, MinOf, SumOf

FIELDS = ["key", "number", "time"]
AGGREGATES = {
    "count": CountOf(),
    "sum": SumOf("number"),
    "least": MinOf("number"),
    "most": MaxOf("number"),
    "mean": MeanOf("number"),
}


class Tuples(BaseWindowedBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit([sorted(tuple(tup) for tup in window), window.end])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("rows", "end"))


class Rows(BatchWindowedBolt):
    def execute_window(self, window, collector):
        rows = sorted(tuple(row.values()) for row in window.table.to_pylist())
        collector.emit(pa.record_batch({"rows": [repr(rows)], "end": pa.array([window.end], pa.int64())}))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("rows", "end"))


def reduced(rows: list[Any]) -> list[Any]:
    found = []
    for key in sorted({key for key, *_ in rows}):
        numbers = [number for of, number, _ in rows if of == key]
        mean = sum(numbers) / len(numbers)
        found.append((key, len(numbers), sum(numbers), min(numbers), max(numbers), mean))
    return found


batches = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-12, 12)), min_size=1, max_size=6)
steps = st.lists(st.one_of(batches, batches, st.integers(1, 25), st.sampled_from(["restart", "gap"])), max_size=30)


@pytest.mark.parametrize("aggregated", [False, True])
@settings(max_examples=50)
@given(st.data(), steps)
def test_windows_of_rows_and_their_aggregations(aggregated: bool, data: Any, steps: list[Any]) -> None:
    sizes = st.integers(1, 30)
    kind, length, slide = data.draw(st.tuples(st.sampled_from(["count", "time", "event"]), sizes, sizes))

    def window(bolt: Any) -> Any:
        if kind == "count":
            return bolt.with_window(Count(length), Count(slide))
        bolt = bolt.with_window(Duration(length), Duration(slide))
        if kind == "event":
            bolt = bolt.with_timestamp_field("time").with_lag(Duration(5)).with_watermark_interval(Duration(10))
        return bolt

    tuples = BoltTester(window(Tuples()), [make_tuple([0, 0, 0], FIELDS)])
    bolt = window(Rows())
    rows = BoltTester(bolt.with_aggregate("key", AGGREGATES) if aggregated else bolt)
    time = 30
    for step in steps:
        if isinstance(step, int):
            tuples.advance(step / 1000)
            rows.advance(step / 1000)
        elif step == "restart":
            rows.restart()
        elif step == "gap":
            time += 1000
        else:
            values = [(key, number, max(1, time + disorder)) for key, number, disorder in step]
            time += 5
            tuples.execute(*(make_tuple(row, FIELDS) for row in values))
            columns = zip(*values, strict=True)
            rows.execute(pa.record_batch([pa.array(column, pa.int64()) for column in columns], names=FIELDS))
    expected = [(reduced(held) if aggregated else held, end) for held, end in tuples.collector.values()]
    assert rows.collector.values() == [(repr(held), end) for held, end in expected]


def batch(*times: Any, type: Any = None) -> Any:  # noqa: A002
    return pa.record_batch({"time": pa.array(times, type)})


def test_times_may_be_timestamps_or_extracted() -> None:
    for bolt, rows in [
        (Rows().with_timestamp_field("time"), batch(5_000, 15_000, 25_000, type=pa.timestamp("us"))),
        (Rows().with_timestamp_extractor(lambda rows: rows["time"]), batch(5, 15, 25)),
        (Rows().with_timestamp_extractor(lambda rows: rows["time"].to_numpy() * 5), batch(1, 3, 5)),
    ]:
        tester = BoltTester(bolt.with_tumbling_window(Duration(10)), [rows])
        tester.execute(rows)
        tester.advance(1)
        assert [end for _, end in tester.collector.values()] == [10, 20]


@pytest.mark.parametrize("wrong", [batch(1.5), batch(None, type=pa.int64()), batch("1")])
def test_times_must_be_integers(wrong: Any) -> None:
    tester = BoltTester(Rows().with_tumbling_window(Duration(10)).with_timestamp_field("time"), [wrong])
    with pytest.raises(TupleError, match="must be integers, in milliseconds"):
        tester.execute(wrong)


def test_late_rows_are_counted() -> None:
    tester = BoltTester(Rows().with_tumbling_window(Duration(10)).with_timestamp_field("time"), [batch(1)])
    tester.execute(batch(25))
    tester.advance(1)
    tester.execute(batch(24, 25, 26, 1))
    assert tester.context.metrics.living("counter", "late-tuples").get_count() == 2


def test_what_columns_do_not_have_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match="they have: CountOf, MeanOf"):
        BoltTester(Rows().with_tumbling_window(Count(3)).with_aggregate(kinds=DistinctOf("time")))
    bolt = Rows().with_tumbling_window(Duration(3)).with_timestamp_field("time")
    with pytest.raises(InvalidTopologyError, match="no stream for late tuples"):
        BoltTester(bolt.with_late_tuple_stream("late"))


def test_another_window_over_a_checkpoint_is_refused() -> None:
    first = BoltTester(Rows().with_tumbling_window(Count(3)))
    first.execute(batch(1))
    second = BoltTester(Rows().with_tumbling_window(Count(4)))
    with pytest.raises(CheckpointError, match="3 tuples, sliding by 3 tuples, not of 4 tuples, sliding by 4"):
        second.bolt.init_state(first.state)
