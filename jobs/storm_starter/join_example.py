"""storm-starter's JoinExample: squares and cubes of the same numbers are joined in windows of five seconds.

What to look for: the window of one stream holds for both; with `print` each pair shows as (number, (square, cube)).

    storm-spark run jobs/storm_starter/join_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout

from storm_on_spark import Topology
from storm_on_spark.streams import Duration, PairValueMapper, StreamBuilder, TumblingWindows

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    squares = builder.new_stream(RowSpout(["key", "val"], lambda n: (n + 1, (n + 1) ** 2)), PairValueMapper(0, 1))
    cubes = builder.new_stream(RowSpout(["key", "val"], lambda n: (n + 1, (n + 1) ** 3)), PairValueMapper(0, 1))
    squares.window(TumblingWindows.of(Duration.seconds(5))).join(cubes).print()
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
