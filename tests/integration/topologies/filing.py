"""A topology that writes numbers to files, and stops once between the writing of a file and the commit."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from topologies.parts import Numbers

from storm_on_spark import LocalCluster, Topology, TopologyBuilder
from storm_on_spark.connectors.files import FileBolt

COUNT = 800
CONF = {"topology.batch.max.tuples": 100}


class Halting(FileBolt):
    """Waits to be killed once the third file is written; not again where that is noted."""

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.noted = Path(conf["test.noted"])

    def finish_micro_batch(self):
        super().finish_micro_batch()
        if self._number >= 3 and not self.noted.exists():
            self.noted.touch()
            time.sleep(600)


def filing(folder: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(COUNT, burst=20))
    builder.set_bolt("files", Halting(folder, ["n"])).shuffle_grouping("numbers")
    return builder.create_topology()


def conf_of(checkpoint: str, noted: str) -> dict[str, object]:
    return {**CONF, "topology.checkpoint.dir": checkpoint, "test.noted": noted}


def main(folder: str, checkpoint: str, noted: str) -> None:
    with LocalCluster() as cluster:
        cluster.submit_topology("filing", conf_of(checkpoint, noted), filing(folder))
        cluster.await_completion("filing", 200)


if __name__ == "__main__":
    # Imported by name: what is defined in `__main__` is another module in every process.
    from topologies import filing as module

    module.main(*sys.argv[1:])
