"""storm-starter's AggregateExample: the mean of the numbers below 500 in each window of five seconds.

What to look for: a user-defined aggregator. Both tasks filter; the one that has the window aggregates.

    storm-spark run jobs/storm_starter/aggregate_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, integer

from storm_on_spark import Topology
from storm_on_spark.streams import CombinerAggregator, Duration, StreamBuilder, TumblingWindows, ValueMapper

conf = dict(DEFAULTS)


class Mean(CombinerAggregator):
    """The mean of numbers."""

    def init(self) -> tuple[int, int]:
        return 0, 0

    def apply(self, accumulator: tuple[int, int], value: int) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def merge(self, first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
        return first[0] + second[0], first[1] + second[1]

    def result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    (
        builder.new_stream(RowSpout(["value", "ts", "msgid"], integer), ValueMapper(0), 2)
        .window(TumblingWindows.of(Duration.seconds(5)))
        .filter(lambda number: 0 < number < 500)
        .aggregate(Mean())
        .print()
    )
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
