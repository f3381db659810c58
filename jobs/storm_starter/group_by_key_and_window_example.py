"""storm-starter's GroupByKeyAndWindowExample: the prices of each share among the last six quotes, and the highest one.

What to look for: a window of six quotes that slides by three; two programs in one topology.

    storm-spark run jobs/storm_starter/group_by_key_and_window_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout

from storm_on_spark import Topology
from storm_on_spark.streams import Count, PairValueMapper, SlidingWindows, StreamBuilder

conf = dict(DEFAULTS)

QUOTES = (
    ("AAPL", 100.0),
    ("GOOG", 780.0),
    ("FB", 125.0),
    ("AAPL", 105.0),
    ("GOOG", 790.0),
    ("FB", 130.0),
    ("AAPL", 102.0),
    ("GOOG", 788.0),
    ("FB", 128.0),
)


def quote(number: int) -> tuple[str, float]:
    """Returns a share and its price."""
    return QUOTES[number % len(QUOTES)]


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    window = SlidingWindows.of(Count(6), Count(3))
    builder = StreamBuilder()
    grouped = builder.new_stream(RowSpout(["symbol", "price"], quote), PairValueMapper(0, 1))
    grouped.group_by_key_and_window(window).print()
    reduced = builder.new_stream(RowSpout(["symbol", "price"], quote), PairValueMapper(0, 1))
    reduced.reduce_by_key_and_window(max, window).print()
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
