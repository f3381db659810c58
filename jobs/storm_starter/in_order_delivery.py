"""storm-starter's InOrderDeliveryTest: tuples between two tasks arrive in the order in which they were emitted.

What to look for: eight spout tasks count, each for itself; a bolt fails tuples that come out of order, and prints them.
A message that failed is not emitted again.

    storm-spark run jobs/storm_starter/in_order_delivery.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import COUNT, DEFAULTS

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    FailedException,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

conf = dict(DEFAULTS)


class InOrderSpout(BaseRichSpout):
    """Emits the task's number and 0, 1, 2 and so on."""

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector, self._count = collector, conf.get(COUNT, DEFAULTS[COUNT])
        self.base, self.next = context.this_task_index, 0

    def next_tuple(self) -> None:
        if not self.exhausted():
            self._collector.emit([self.base, self.next], message_id=self.next)
            self.next += 1

    def exhausted(self) -> bool:
        return self.next >= self._count

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("c1", "c2"))


class Check(BaseBasicBolt):
    """Fails tuples that come out of order."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        #: Task -> the number that comes next.
        self.expected: dict[int, int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        task, number = tup
        expected = self.expected.get(task, 0)
        if number != expected:
            print(f"{task} {number} != {expected}")
            raise FailedException(f"{task} {number} != {expected}")
        self.expected[task] = number + 1


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", InOrderSpout(), 8)
    builder.set_bolt("count", Check(), 8).fields_grouping("spout", Fields("c1"))
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
