"""storm-starter's WordCountToBolt: counts of words go to a bolt outside the Streams API.

What to look for: a bolt gets tuples with the fields `key` and `value`. That of Storm's example writes to Redis.

    storm-spark run jobs/storm_starter/word_count_to_bolt.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, RowSpout, word

from storm_on_spark import BaseBasicBolt, BasicOutputCollector, Topology, Tuple
from storm_on_spark.streams import StreamBuilder, ValueMapper

conf = dict(DEFAULTS)


class StoreBolt(BaseBasicBolt):
    """Stands for a bolt that writes to a database."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print(f"wordCount[{tup['key']}] = {tup['value']}")


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = StreamBuilder()
    words = builder.new_stream(RowSpout(["word"], word), ValueMapper(0))
    words.map_to_pair(lambda word: (word, 1)).count_by_key().to(StoreBolt())
    return builder.build()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
