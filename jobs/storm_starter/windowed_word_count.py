"""storm-starter's WindowedWordCount: the words that occurred at least five times in two seconds.

What to look for: operations between a window and an aggregation are executed before the window, where the sentences are
read; the words are gathered and counted in the tasks that have their keys. `storm-spark explain` shows both bolts.

    storm-spark run jobs/storm_starter/windowed_word_count.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, sentence

from storm_on_spark import Topology
from storm_on_spark.streams import Duration, StreamBuilder, TumblingWindows, ValueMapper

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    (
        builder.new_stream(RowSpout(["sentence"], sentence), ValueMapper(0), 2)
        .window(TumblingWindows.of(Duration.seconds(2)))
        .flat_map(str.split)
        .map_to_pair(lambda word: (word, 1))
        .count_by_key()
        .filter(lambda pair: pair[1] >= 5)
        .print()
    )
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
