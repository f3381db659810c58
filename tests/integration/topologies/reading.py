"""A topology that counts the lines of files which Spark reads, and kills its driver once in the middle."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from storm_on_spark import BaseBasicBolt, FailedException, Fields, LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.connectors.sources import RetryBackoff

DIE_AT = 200
RETRY = RetryBackoff(initial_delay_ms=1, delay_period_ms=1, max_retries=1)


class CountEach(BaseBasicBolt):
    """Counts numbers; of a hundred, 7 fails once and 9 always."""

    def prepare(self, conf, context):
        self.seen, self.tried = Counter(), set()

    def execute(self, tup, collector):
        number = int(tup["line"])
        if number % 100 == 9:
            raise FailedException("poison")
        if number % 100 == 7 and number not in self.tried:
            # Kept although the tuple fails: only an exception of another kind takes the state back.
            self.tried.add(number)
            raise FailedException("not yet")
        self.seen[number] += 1
        collector.emit([number, self.seen[number]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "times"))


class Total(BaseBasicBolt):
    """Writes what has been counted; kills the driver once, in the middle."""

    def prepare(self, conf, context):
        self.seen, self.dead = {}, []
        self.out = Path(conf["test.out"])

    def execute(self, tup, collector):
        if tup.source_stream == "dead":
            self.dead.append((int(tup["row"]["value"]), tup["failures"]))
        else:
            self.seen[tup["number"]] = tup["times"]
            killed = self.out.with_name("killed")
            if tup["number"] >= DIE_AT and not killed.exists():
                killed.touch()
                os.kill(int(self.out.with_name("driver").read_text()), signal.SIGKILL)
        new = self.out.with_suffix(".new")
        new.write_text(json.dumps([self.seen, sorted(self.dead)]))
        new.rename(self.out)


def reading(folder: str) -> Topology:
    builder = TopologyBuilder()
    spout = FileSpout(folder, max_files_per_batch=1, retry=RETRY, dead_letter_stream="dead")
    builder.set_spout("lines", spout)
    builder.set_bolt("count", CountEach(), 2).fields_grouping("lines", Fields("line"))
    builder.set_bolt("total", Total()).global_grouping("count").global_grouping("lines", "dead")
    return builder.create_topology()


def conf_of(checkpoint: str, out: str) -> dict[str, object]:
    return {"topology.checkpoint.dir": checkpoint, "test.out": out}


def main(folder: str, checkpoint: str, out: str) -> None:
    Path(out).with_name("driver").write_text(str(os.getpid()))
    with LocalCluster() as cluster:
        cluster.submit_topology("reading", conf_of(checkpoint, out), reading(folder))
        cluster.await_completion("reading", 200)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import reading as module

    module.main(*sys.argv[1:])
