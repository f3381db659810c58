"""storm-starter's TypedTupleExample: several fields of a tuple become one value, a Python tuple.

What to look for: numbers are grouped by the ten seconds in which they were made, ten at a time.

    storm-spark run jobs/storm_starter/typed_tuple_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, integer

from storm_on_spark import Topology
from storm_on_spark.streams import Count, StreamBuilder, TumblingWindows, TupleValueMappers

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    stream = builder.new_stream(RowSpout(["value", "ts", "msgid"], integer), TupleValueMappers.of(0, 1, 2))
    pairs = stream.map_to_pair(lambda row: (row[1] // 10_000, row[0]))
    pairs.window(TumblingWindows.of(Count(10))).group_by_key().print()
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
