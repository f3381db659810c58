"""Numbers that are counted, as a topology that begins before Spark does. As a script: until it is killed.

`python early.py FOLDER` prints how many are acked, and waits, as for a Spark that takes for ever to start.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder, compile_topology
from storm_on_spark.api.info import TopologyInfo

FEW = 200


class Numbers(BaseRichSpout):
    """Counts up until there is a file; writes down how far it came."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next, self.again = collector, 0, []

    def next_tuple(self) -> None:
        if self.again:
            number = self.again.pop()
        elif self.over():
            return
        else:
            number, self.next = self.next, self.next + 1
        self.collector.emit([number], message_id=number)
        time.sleep(0.001)

    def over(self) -> bool:
        return self.next > FEW and Path(self.folder, "end").exists()

    def fail(self, message_id: int) -> None:
        self.again.append(message_id)

    def exhausted(self) -> bool:
        return self.over() and not self.again

    def close(self) -> None:
        Path(self.folder, "numbers").write_text(str(self.next))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number"))


class Count(BaseBasicBolt):
    """Counts each number."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.counts: Counter[int] = Counter()

    def execute(self, tup: Any, collector: Any) -> None:
        self.counts[tup[0]] += 1


def build(folder: Path) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(str(folder)))
    builder.set_bolt("count", Count(), 2).fields_grouping("numbers", "number")
    return builder.create_topology()


def counts(spark: Any, folder: Path) -> Counter[int]:
    """Returns how often each number was counted, as the state store has it."""
    from storm_on_spark.spark.state import read_bolt_state

    states = read_bolt_state(spark, folder / "checkpoint", "count").values()
    return sum((state["counts"] for state in states), Counter())


def numbers_in(folder: Path) -> int:
    """Returns how many numbers the spout has emitted in all its lives."""
    return int((folder / "numbers").read_text())


def main() -> None:
    """Starts the topology, whose Spark never starts."""
    from storm_on_spark.spark.session import ComingSession

    infos: list[Callable[[], TopologyInfo]] = []

    def never() -> Any:
        while infos[0]().acked < FEW:
            time.sleep(0.01)
        print(infos[0]().acked, flush=True)
        time.sleep(600)

    folder = Path(sys.argv[1])
    session = ComingSession(never, "local[2]", 2)
    compile_topology(build(folder)).start(session, "early", checkpoint=folder / "checkpoint", began=infos.append)


if __name__ == "__main__":
    main()
