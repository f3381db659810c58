"""How far is it from one help topic to another? A topology with a cycle.

Python's `help()` knows topics that point to related ones. A seed topic goes round in the cycle: `visit` passes a topic
on the first time it comes (or when it comes by a shorter way), `links` emits the topics that it points to, and these go
back to `visit`.

What to look for: Storm's cycles, and what anchoring means in one. The seed's tree grows with every topic that is found,
and the spout gets an `ack` exactly when no topic is left in the cycle, so it knows when its whole search is done. In
the plan the edge that closes the cycle carries its tuples over to the next micro-batch.

    storm-spark run jobs/reach.py -c reach.seeds=CLASSES,STRINGS
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    ConfigError,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    TopologyInfo,
    Tuple,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = "reach.seeds"
"""Configuration key: the topics to start from, separated by commas."""

conf = {SEEDS: "CLASSES"}


def related(topic: str) -> list[str]:
    """Returns the topics that a help topic points to.

    Example:
        >>> related("TYPES")[:2]
        ['STRINGS', 'UNICODE']
    """
    import pydoc

    entry = pydoc.Helper.topics.get(topic, "")
    if isinstance(entry, str):
        # Another name of a topic; some are in lower case and have their own page.
        return [entry] if entry in pydoc.Helper.topics else []
    return [name for name in entry[1].split() if name in pydoc.Helper.topics]


class SeedSpout(BaseRichSpout):
    """Emits topics at distance 0 from themselves.

    Args:
        seeds: the topics.
    """

    def __init__(self, seeds: Sequence[str]) -> None:
        self._seeds = list(seeds)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.waiting = list(self._seeds)
        self.done: list[str] = []

    def next_tuple(self) -> None:
        if self.waiting:
            seed = self.waiting.pop(0)
            self._collector.emit([seed, seed, 0], message_id=seed)

    def ack(self, message_id: str) -> None:
        """All that can be reached from the seed has been visited."""
        self.done.append(message_id)

    def fail(self, message_id: str) -> None:
        self.waiting.append(message_id)

    def exhausted(self) -> bool:
        return not self.waiting

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("seed", "topic", "distance"))


class Visit(BaseBasicBolt):
    """Remembers the distance of each topic, and passes on new or nearer ones."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        #: (seed, topic) -> the shortest distance so far.
        self.distances: dict[tuple[str, str], int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        seed, topic, distance = tup
        if distance < self.distances.get((seed, topic), distance + 1):
            self.distances[seed, topic] = distance
            collector.emit([seed, topic, distance])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("seed", "topic", "distance"))


class Links(BaseBasicBolt):
    """Emits the topics that a topic points to, one step farther."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for topic in related(tup["topic"]):
            collector.emit([tup["seed"], topic, tup["distance"] + 1])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("seed", "topic", "distance"))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    import pydoc

    seeds = [seed.strip() for seed in str(conf.get(SEEDS, "CLASSES")).split(",") if seed.strip()]
    for seed in seeds:
        if seed not in pydoc.Helper.topics:
            raise ConfigError(f"{SEEDS} names {seed!r}, which is no topic of help(); try CLASSES", key=SEEDS)
    builder = TopologyBuilder()
    builder.set_spout("seeds", SeedSpout(seeds))
    visit = builder.set_bolt("visit", Visit(), 2).fields_grouping("seeds", Fields("topic"))
    builder.set_bolt("links", Links(), 2).shuffle_grouping("visit")
    visit.fields_grouping("links", Fields("topic"))
    return builder.create_topology()


def report(spark: SparkSession, checkpoint: str, info: TopologyInfo) -> list[dict[str, Any]]:
    """Returns the topics that were reached, the nearest first."""
    from storm_on_spark.spark.state import read_bolt_state

    found = [
        {"seed": seed, "topic": topic, "distance": distance}
        for state in read_bolt_state(spark, checkpoint, "visit").values()
        for (seed, topic), distance in state["distances"].items()
    ]
    return sorted(found, key=lambda row: (row["seed"], row["distance"], row["topic"]))


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf, report)
