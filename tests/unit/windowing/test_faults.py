"""Windows that raise, and windows that are another one after a restart; in process, with the runtime's own tasks."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark import BaseBasicBolt, BaseWindowedBolt, CheckpointError, Count, Duration, Fields, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple
from storm_on_spark.windowing import BatchWindowedBolt, SumOf

POISON = 13
seen: list[Any] = []


class Windows(BaseWindowedBolt):
    """Emits what windows hold; raises at one number, after it has emitted and counted."""

    def prepare(self, conf, context, collector):
        self.collector, self.evaluated = collector, 0

    def execute(self, window):
        numbers = [tup["value"] for tup in window]
        self.evaluated += 1
        self.collector.emit([numbers, self.evaluated])
        if POISON in numbers:
            raise ValueError("poison")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("numbers", "evaluated"))


class AtOnce(ListSpout):
    """Emits all in one call, so that they are in one micro-batch however slow the machine is."""

    def next_tuple(self):
        for _ in range(32):
            super().next_tuple()


class Sink(BaseBasicBolt):
    def execute(self, tup, collector):
        seen.append(tuple(tup))


def test_a_window_that_raises_leaves_no_trace_and_its_tuples_fail_at_the_next_turn() -> None:
    seen.clear()
    builder = TopologyBuilder()
    spout = ListSpout(range(30), message_ids=lambda at: at if at < 25 else None, max_fails=0)
    builder.set_spout("numbers", spout)
    builder.set_bolt("windows", Windows().with_tumbling_window(Count(4))).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("windows")
    topology = InProcessTopology(compile_graph(builder.create_topology(), effective_conf({})), "test")
    info = topology.run()

    # 15 was the tuple at which the window was due: it is poison. 16 takes its place, and with it the window fails.
    windows = [list(range(start, start + 4)) for start in (0, 4, 8, 17, 21, 25)]
    assert seen == [(numbers, count) for count, numbers in enumerate(windows, 1)]
    [error] = info.components["windows"].errors
    assert "poison" in error.message
    assert (info.failed, info.acked) == (5, 20)


SUM_WITH_POISON = 12 + POISON + 14 + 15


class Sums(BaseWindowedBolt):
    """Emits sums; raises at one of them, after it has emitted it."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        total = window.result["sum"]
        self.collector.emit([total])
        if total == SUM_WITH_POISON:
            raise ValueError("poison")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sum"))


class ColumnSums(BatchWindowedBolt):
    """The same over columns."""

    def execute_window(self, window, collector):
        collector.emit(window.table)
        if window.table["sum"].to_pylist() == [SUM_WITH_POISON]:
            raise ValueError("poison")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sum"))


@pytest.mark.parametrize(
    ("bolt", "failed", "sums"),
    [
        # 15, at which the window was due, fails and comes again at the end; 16 takes its place.
        (Sums(), 1, [6, 22, 38, 74, 90, 106, 15 + 29 + 30 + 31]),
        # All rows that came together fail, and come again.
        (ColumnSums(), 32, [6, 22, 38, 70, 86, 102, 118]),
    ],
    ids=["tuples", "columns"],
)
def test_a_window_of_results_that_raises_is_left_out_and_no_other(bolt: Any, failed: int, sums: list[int]) -> None:
    seen.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", AtOnce(range(32), message_ids=lambda at: at, max_fails=1))
    window = bolt.with_tumbling_window(Count(4)).with_aggregate(sum=SumOf("value"))
    builder.set_bolt("sums", window).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("sums")
    info = InProcessTopology(compile_graph(builder.create_topology(), effective_conf({})), "test").run()

    [error] = info.components["sums"].errors
    assert "poison" in error.message
    assert (info.failed, info.acked) == (failed, 32)
    assert seen == [(total,) for total in sums]


# --- another window over a checkpoint ---------------------------------------------------------------------------


class Restarted:
    """A tester whose bolt is another one after a restart."""

    def __init__(self, before: Any, after: Any, *times: int) -> None:
        state = StoredState()
        for self.tester, given in ((BoltTester(before), times), (BoltTester(after), ())):
            self.tester.bolt.init_state(state)
            self.tester.execute(*(make_tuple([time]) for time in given))

    def shown(self, *times: int, seconds: float = 0) -> list[Any]:
        self.tester.execute(*(make_tuple([time]) for time in times))
        self.tester.advance(seconds)
        return [numbers for numbers, _ in self.tester.collector.values()]


def test_a_window_with_another_length_goes_on_with_the_tuples_that_are_there() -> None:
    longer = Restarted(Windows().with_window(Count(2), Count(2)), Windows().with_window(Count(5), Count(2)), 1, 2, 3, 4)
    assert longer.shown(5, 6) == [[3, 4, 5, 6]]
    shorter = Restarted(
        Windows().with_window(Count(5), Count(2)), Windows().with_window(Count(1), Count(1)), 1, 2, 3, 4
    )
    assert shorter.shown(5) == [[5]]
    assert [tup["value"] for tup in shorter.tester.collector.acked] == [1, 2, 3, 4]


def test_windows_that_were_evaluated_are_not_again_with_another_slide() -> None:
    def by_time(slide: int) -> Any:
        return Windows().with_window(Duration(20), Duration(slide)).with_timestamp_field("value")

    state = StoredState()
    first = BoltTester(by_time(10))
    first.bolt.init_state(state)
    first.execute(*(make_tuple([time]) for time in (5, 15, 31)))
    first.advance(1)
    assert [numbers for numbers, _ in first.collector.values()] == [[5], [5, 15], [15]]
    second = BoltTester(by_time(5))
    second.bolt.init_state(state)
    second.execute(make_tuple([41]))
    second.advance(1)
    assert [numbers for numbers, _ in second.collector.values()] == [[31], [31]]


def test_windows_by_another_time_are_refused_over_a_checkpoint() -> None:
    bolt = Windows().with_tumbling_window(Duration(10)).with_timestamp_field("value")
    with pytest.raises(CheckpointError, match="were by the time at which tuples come and are now by the time that"):
        Restarted(Windows().with_tumbling_window(Duration(10)), bolt, 1, 2)
