"""Windowed bolts as users write them, driven by the kit."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark import (
    BaseWindowedBolt,
    Config,
    Count,
    Duration,
    Fields,
    InvalidTopologyError,
    TopologyBuilder,
    compile_topology,
)
from storm_on_spark.testing import BoltTester, ListSpout, make_tuple


class Show(BaseWindowedBolt):
    """Emits what each window holds, what is new and what has expired, and its bounds."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        parts = ([tup["value"] for tup in part] for part in (window.get(), window.new, window.expired))
        self.collector.emit([*parts, window.start, window.end])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("all", "new", "expired", "start", "end"))


def numbers(*values: Any) -> list[Any]:
    return [make_tuple([value]) for value in values]


def test_a_window_of_tuples_slides_by_tuples() -> None:
    tester = BoltTester(Show().with_window(Count(3), Count(2)))
    tester.execute(*numbers(*range(6)))
    assert tester.collector.values() == [
        ([0, 1], [0, 1], [], None, None),
        ([1, 2, 3], [2, 3], [0], None, None),
        ([3, 4, 5], [4, 5], [1, 2], None, None),
    ]


def test_a_window_of_time_slides_by_time() -> None:
    tester = BoltTester(Show().with_window(Duration.seconds(2), Duration.seconds(1)))
    tester.execute(*numbers(1))
    tester.advance(0.5)
    tester.execute(*numbers(2))
    tester.advance(1)
    tester.execute(*numbers(3))
    tester.advance(3)
    assert tester.collector.values() == [
        ([1, 2], [1, 2], [], -1000, 1000),
        ([1, 2, 3], [3], [], 0, 2000),
        ([3], [], [1, 2], 1000, 3000),
    ]
    assert [tup["value"] for tup in tester.collector.acked] == [1, 2, 3]


def test_emits_are_anchored_to_the_window_and_its_tuples_acked_when_they_leave() -> None:
    tester = BoltTester(Show().with_window(Count(2), Count(1)))
    given = numbers(1, 2, 3)
    tester.execute(*given)
    assert [emission.anchors for emission in tester.collector.emitted] == [
        (given[0],),
        (given[0], given[1]),
        (given[1], given[2]),
    ]
    assert tester.collector.acked == [given[0]]


def test_windows_survive_a_crash() -> None:
    def run(restart: bool) -> list[Any]:
        tester = BoltTester(Show().with_window(Count(100), Count(7)))
        for start in range(0, 400, 40):
            tester.execute(*numbers(*range(start, start + 40)))
            if restart:
                tester.restart()
        return [tester.collector.values(), [tup.values for tup in tester.collector.acked]]

    assert run(restart=True) == run(restart=False)


def refusal(bolt: Any, **conf: Any) -> str:
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([]))
    builder.set_bolt("show", bolt).shuffle_grouping("numbers")
    with pytest.raises(InvalidTopologyError) as error:
        compile_topology(builder.create_topology(), {f"topology.{key.replace('_', '.')}": conf[key] for key in conf})
    return str(error.value)


def test_a_window_longer_than_the_message_timeout_is_refused() -> None:
    bolt = Show().with_window(Duration.seconds(25), Duration.seconds(10))
    text = refusal(bolt, message_timeout_secs=30)
    assert 'bolt "show": the window\'s length and slide take 35000 ms' in text
    assert Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS in text


def test_a_window_of_more_tuples_than_may_be_pending_is_refused() -> None:
    assert "are 15 tuples" in refusal(Show().with_window(Count(10), Count(5)), max_spout_pending=14)


def test_a_window_needs_a_length() -> None:
    assert "no length" in refusal(Show())
