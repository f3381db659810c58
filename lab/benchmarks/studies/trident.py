"""How many sentences a second Trident counts the words of, beside Apache Storm's, at full speed.

Usage: python -m lab.benchmarks.studies.trident [--size N] [--warm-up S] [--seconds S] [--profile NAME]

Both have one task of each bolt, four batches under way, and a state in memory, which here is in the checkpoint, too. A
sentence counts when its batch is committed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks.contenders import storm
from lab.benchmarks.workloads.data import read_sentences, sentences_file
from storm_on_spark import Fields, LocalCluster, Topology
from storm_on_spark.trident import Count, IBatchSpout, TridentTopology
from storm_on_spark.trident.state import MemoryMapState

_PATIENCE_SECS = 120


class Sentences(IBatchSpout):
    """Emits the sentences of a file again and again.

    Args:
        path: of the file.
        size: sentences of a batch.
        told: the file in which the number of the last batch that is committed is written.
    """

    def __init__(self, path: str, size: int, told: str) -> None:
        self._path, self._size, self._told = path, size, told

    def open(self, conf: Mapping[str, Any], context: Any) -> None:
        self._sentences = read_sentences(self._path)

    def emit_batch(self, batch_id: int, collector: Any) -> None:
        sentences = self._sentences
        for at in range(batch_id * self._size, (batch_id + 1) * self._size):
            collector.emit([sentences[at % len(sentences)]])

    def ack(self, batch_id: int) -> None:
        Path(self._told).write_text(f"{batch_id}\n", "utf-8")

    def get_output_fields(self) -> Fields:
        return Fields("sentence")


def build(path: str, size: int, told: str) -> Topology:
    """Returns the topology."""
    topology = TridentTopology()
    (
        topology.new_stream("sentences", Sentences(path, size, told))
        .each("sentence", lambda tup: tup["sentence"].split(" "), "word")
        .group_by("word")
        .persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
    )
    return topology.build()


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000, help="sentences of a batch")
    parser.add_argument("--warm-up", type=int, default=15, help="seconds")
    parser.add_argument("--seconds", type=int, default=30, help="how long is measured")
    parser.add_argument("--profile", default="realtime", help="topology.profile of ours")
    options = parser.parse_args()
    storm.prepare(python=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(sentences_file(folder / "sentences.txt"))
        words = (path, str(options.size), str(options.warm_up), str(options.seconds))
        command = storm.java_command(folder, "benchmarks.Trident", *words)
        patience = options.warm_up + options.seconds + _PATIENCE_SECS
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=True)
        theirs = int(done.stdout.splitlines()[-1])
        ours = _ours(path, folder / "told", options)
    print(
        f"batches of {options.size:,} sentences: Storm {theirs:,} sentences a second, ours ({options.profile}) "
        f"{ours:,.0f}: {ours / theirs:.2f} : 1"
    )
    return 0


def _ours(path: str, told: Path, options: argparse.Namespace) -> float:
    conf = {
        "topology.profile": options.profile,
        "topology.max.spout.pending": 4,
        "topology.trident.batch.emit.interval.millis": 1,
    }
    with LocalCluster() as cluster:
        cluster.submit_topology("trident", conf, build(path, options.size, str(told)))
        deadline = time.monotonic() + _PATIENCE_SECS
        while not told.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("no batch is committed")
            time.sleep(0.01)
        time.sleep(options.warm_up)
        before, began = _committed(told), time.perf_counter()
        time.sleep(options.seconds)
        committed, secs = _committed(told) - before, time.perf_counter() - began
    return float(options.size * committed / secs)


def _committed(told: Path) -> int:
    while not (text := told.read_text("utf-8")).endswith("\n"):
        pass  # it is being written
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
