"""storm-starter's StatefulWordCount: words are counted in windows, and the counts are added up in a state.

What to look for: Storm needs Redis for this state; here it is in the checkpoint, and exact after a crash.

    storm-spark run jobs/storm_starter/stateful_word_count.py
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, word

from storm_on_spark import Topology
from storm_on_spark.streams import Duration, StreamBuilder, TumblingWindows, ValueMapper

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    (
        builder.new_stream(RowSpout(["word"], word), ValueMapper(0), 2)
        .window(TumblingWindows.of(Duration.seconds(2)))
        .map_to_pair(lambda word: (word, 1))
        .count_by_key()
        .update_state_by_key(0, operator.add)
        .to_pair_stream()
        .print()
    )
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
