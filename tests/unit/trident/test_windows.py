"""Windows over batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trident_run import Gathered, results

from storm_on_spark import FailedException, InvalidTopologyError
from storm_on_spark.api.config.config import effective_conf
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process.topology import InProcessTopology
from storm_on_spark.streams import Duration, SlidingWindows, TumblingWindows
from storm_on_spark.testing import ManualClock
from storm_on_spark.trident import Aggregator, FixedBatchSpout, Sum, TridentTopology
from storm_on_spark.windowing import Count

NUMBERS = [[number] for number in range(1, 11)]


class Listed(Aggregator):
    def init(self, batch_id: Any, collector: Any) -> list[Any]:
        return []

    def aggregate(self, accumulator: list[Any], tup: Any, collector: Any) -> None:
        accumulator.append(tup[0])

    def complete(self, accumulator: list[Any], collector: Any) -> None:
        collector.emit([accumulator])


def test_tumbling_windows_of_a_number_of_tuples_go_on_over_batches() -> None:
    found = results(NUMBERS, lambda s: s.tumbling_window(Count(4), "value", Sum(), "sum"))
    assert found == [(10,), (26,)]


def test_sliding_windows_of_a_number_of_tuples() -> None:
    found = results(NUMBERS, lambda s: s.sliding_window(Count(4), Count(2), Listed(), "values"))
    assert found == [([1, 2],), ([1, 2, 3, 4],), ([3, 4, 5, 6],), ([5, 6, 7, 8],), ([7, 8, 9, 10],)]
    assert results(NUMBERS, lambda s: s.window(SlidingWindows.of(Count(1), Count(4)), Listed(), "v")) == [
        ([4],),
        ([8],),
    ]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=10, deadline=None)
@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 6), st.integers(1, 5))
def test_windows_of_a_number_of_tuples_are_those_of_plain_python(
    count: int, length: int, slide: int, size: int
) -> None:
    numbers = list(range(count))
    found = results(
        [[n] for n in numbers],
        lambda s: s.sliding_window(Count(length), Count(slide), Listed(), "values"),
        size=size,
    )
    expected = [numbers[max(0, end - length) : end] for end in range(slide, count + 1, slide)]
    assert [values for (values,) in found] == expected


class _Steps(ManualClock):
    """Moves on whenever somebody looks at it."""

    def now_ms(self) -> int:
        self.advance(1)
        return super().now_ms()


def test_windows_of_time_hold_the_tuples_that_were_committed_within() -> None:
    topology = TridentTopology()
    numbers = [[n] for n in range(300)]
    stream = topology.new_stream("n", FixedBatchSpout("n", 2, numbers))
    gathered = Gathered(stream.window(TumblingWindows.of(Duration.seconds(20)), Listed(), "values"))
    sliding = Gathered(stream.sliding_window(Duration.seconds(40), Duration.seconds(20), Listed(), "values"))
    conf = {"topology.trident.batch.emit.interval.millis": 1, "topology.max.spout.pending": 1}
    run = InProcessTopology(compile_graph(topology.build(), effective_conf(conf)), "timed", _Steps())
    run.run()
    assert run.failure is None
    tumbled = [values for (values,) in gathered.rows]
    assert len(tumbled) > 2
    assert max(map(len, tumbled)) > 2, "several batches are in one window"
    assert [value for values in tumbled for value in values] == list(range(sum(map(len, tumbled)))), (
        "each tuple in one window, in order"
    )
    assert [values[0] for values in (row[0] for row in sliding.rows)] == sorted(row[0][0] for row in sliding.rows)
    assert max(len(values) for (values,) in sliding.rows) > max(map(len, tumbled))


class FailsOnce:
    failed = False

    def __call__(self, tup: Any) -> Any:
        if tup[0] == [1, 2] and not self.failed:
            self.failed = True
            raise FailedException("not yet")
        return tup[0]


def test_a_commit_that_comes_again_adds_nothing_and_gives_the_same_windows() -> None:
    found = results(
        NUMBERS[:6], lambda s: s.tumbling_window(Count(2), Listed(), "values").shuffle().map(FailsOnce()), size=2
    )
    assert found == [([1, 2],), ([3, 4],), ([5, 6],)]


def test_windows_of_the_time_of_events_are_refused() -> None:
    stream = TridentTopology().new_stream("n", FixedBatchSpout("n", 2, NUMBERS))
    with pytest.raises(InvalidTopologyError, match="use the Streams API for the time of events"):
        stream.window(TumblingWindows.of(Count(2)).with_timestamp_field("n"), Sum(), "sum")
    with pytest.raises(InvalidTopologyError, match="length and slide are both a Count, or both a Duration"):
        stream.sliding_window(Count(2), Duration(5), Sum(), "sum")
