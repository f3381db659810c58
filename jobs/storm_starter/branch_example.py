"""storm-starter's BranchExample: a stream of numbers is split into even and odd ones.

What to look for: the branches, and what follows them, are in one bolt.

    storm-spark run jobs/storm_starter/branch_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, integer

from storm_on_spark import Topology
from storm_on_spark.streams import StreamBuilder, ValueMapper

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    numbers = builder.new_stream(RowSpout(["value", "ts", "msgid"], integer), ValueMapper(0))
    even, odd = numbers.branch(lambda number: number % 2 == 0, lambda number: number % 2 == 1)
    even.for_each(lambda number: print("EVEN>", number))
    odd.for_each(lambda number: print("ODD >", number))
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
