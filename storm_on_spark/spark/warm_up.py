"""A small topology that takes every way that a tuple can take: spout, exchange, a bolt with state, acker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseRichSpout
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector, SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.topology import Topology
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNT = 200
_PATIENCE_SECS = 120.0


class Numbers(BaseRichSpout):
    """Emits a few numbers."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Begins at 0."""
        self._collector = collector
        self.next = 0

    def next_tuple(self) -> None:
        """Emits the next number, at most a few in a micro-batch."""
        if self.next < _COUNT:
            self._collector.emit([self.next], message_id=self.next)
            self.next += 1

    def exhausted(self) -> bool:
        """After the last number."""
        return self.next == _COUNT

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """One field."""
        declarer.declare(Fields("number"))


class Sum(BaseBasicBolt):
    """Adds them up."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at 0."""
        self.total = 0

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Adds one."""
        self.total += tup["number"]


def topology() -> Topology:
    """Returns the topology.

    Example:
        >>> sorted(topology().components)
        ['numbers', 'sum']
    """
    builder = TopologyBuilder()
    # In several micro-batches: the first one compiles code that the second one runs.
    builder.set_spout("numbers", Numbers()).set_max_spout_pending(_COUNT // 4)
    builder.set_bolt("sum", Sum(), 2).fields_grouping("numbers", Fields("number"))
    return builder.create_topology()


def warm_up(session: SparkSession, patience_secs: float = _PATIENCE_SECS) -> bool:
    """Runs it, so that everything that a topology needs has been loaded, compiled and started once.

    Returns:
        Whether it came to its end within `patience_secs`.
    """
    from storm_on_spark.spark.compiled import compile_topology

    with temporary_folder("warm-up-") as checkpoint:
        query = compile_topology(topology()).start(session, name="warm-up", checkpoint=checkpoint)
        try:
            return bool(query.awaitTermination(patience_secs))
        finally:
            query.stop()
