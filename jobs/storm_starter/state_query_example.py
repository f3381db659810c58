"""storm-starter's StateQueryExample: a stream of names asks how often each was seen so far.

What to look for: the query runs in the tasks that have the state, by a fields grouping, and needs no database.

    storm-spark run jobs/storm_starter/state_query_example.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, word

from storm_on_spark import Topology
from storm_on_spark.streams import StreamBuilder, ValueMapper

conf = dict(DEFAULTS)

ASKED = ("nathan", "mike")


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    words = builder.new_stream(RowSpout(["word"], word), ValueMapper(0), 2)
    state = words.map_to_pair(lambda word: (word, 1)).update_state_by_key(0, lambda count, value: count + 1)
    queries = builder.new_stream(RowSpout(["word"], lambda number: (ASKED[number % len(ASKED)],)), ValueMapper(0))
    queries.state_query(state).print()
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
