"""What durability and a checkpoint in a store cost: micro-batches and complete latency, in one run.

Usage: python -m lab.benchmarks.studies.stores [--rounds N] [--seconds N] [--docs]

One Spark session runs a word count with each checkpoint in turn, as often as there are rounds: in a directory with
either level of durability, on S3 and on HDFS. The servers are moto's and an HDFS with two data nodes, on this machine.
Only the ratios mean something: other work on the machine meets all of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.faults.stores import KINDS, Server, server
from lab.load.topology import Pacer
from lab.suite.pages import put_between
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, TopologyBuilder, compile_topology
from storm_on_spark.runtime.reports.latency import LatencyHistogram
from storm_on_spark.spark.session import local_session, stop_session

BEGIN, END = "<!-- stores: begin -->", "<!-- stores: end -->"
DURABILITY_BEGIN, DURABILITY_END = "<!-- durability: begin -->", "<!-- durability: end -->"
_DOCS = Path(__file__).parents[3] / "docs"
LOCAL, MACHINE = KINDS[0], "local, machine"
PLACES = (LOCAL, MACHINE, *KINDS[1:])
"""Where a checkpoint is, and in a directory with which level of durability: `process`, or `machine`."""
_RATE = 200.0
_STEPS = {
    "micro-batch": "triggerExecution",
    "its offsets written": "walCommit",
    "its commit written": "commitOffsets",
    "its work": "addBatch",
}
"""What Spark tells of a micro-batch, by its own names."""
_SETTLE_SECS = 10.0


class Sentences(BaseRichSpout):
    """Emits a sentence now and then."""

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts."""
        self._collector = collector
        self._pacer = Pacer(_RATE)
        self._next = 0

    def next_tuple(self) -> None:
        """Emits one if one is due."""
        if self._pacer.due():
            self._collector.emit([f"to be or not to be {self._next % 100}"], self._next)
            self._next += 1

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares sentences."""
        declarer.declare(Fields("sentence"))


class Split(BaseBasicBolt):
    """Makes words of sentences."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Emits them."""
        for word in tup[0].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares words."""
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    """Counts words."""

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        """Starts at zero."""
        self.counts: dict[str, int] = {}

    def execute(self, tup: Any, collector: Any) -> None:
        """Counts one."""
        self.counts[tup[0]] = self.counts.get(tup[0], 0) + 1

    def declare_output_fields(self, declarer: Any) -> None:
        """Declares nothing."""


@dataclass(frozen=True)
class Measured:
    """Of one run."""

    batches: int
    times: Mapping[str, float]
    """Median ms of each of `_STEPS`, and of the complete latency."""


def main() -> int:
    """Measures; prints the tables."""
    options = _options()
    found: dict[str, list[Measured]] = {place: [] for place in PLACES}
    with tempfile.TemporaryDirectory(prefix="stores-") as folder, ExitStack() as stack:
        base = Path(folder)
        servers = {kind: stack.enter_context(server(kind, base / f"server-{kind}")) for kind in KINDS}
        conf = {key: value for store in servers.values() if store for key, value in store.folder("x").conf.items()}
        # The URL has the session fetch what S3 needs.
        spark = local_session("local[2]", conf, "s3a://bucket/x")
        stack.callback(stop_session, spark)
        for number in range(options.rounds):
            for place in PLACES[:: -1 if number % 2 else 1]:
                checkpoint = _checkpoint(servers.get(place), base, f"{place.replace(', ', '-')}-{number}")
                durability = "machine" if place == MACHINE else "process"
                found[place].append(_measure(spark, checkpoint, durability, options.seconds))
                last = found[place][-1]
                print(f"{place}: {last.batches} micro-batches, {dict(last.times)}", file=sys.stderr)
    stores = markdown(found, [LOCAL, *KINDS[1:]], options.seconds)
    durability = markdown(found, [LOCAL, MACHINE], options.seconds)
    sys.stdout.write(stores + durability)
    if options.docs:
        put_between(_DOCS / "storage.md", BEGIN, END, stores)
        put_between(_DOCS / "performance.md", DURABILITY_BEGIN, DURABILITY_END, durability)
    return 0


def _checkpoint(store: Server | None, base: Path, name: str) -> str:
    return str(base / name) if store is None else store.folder(name).url


def _measure(spark: Any, checkpoint: str, durability: str, seconds: float) -> Measured:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", Split()).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    conf = {Config.TOPOLOGY_WORKERS: 1, Config.TOPOLOGY_DURABILITY: durability}
    compiled = compile_topology(builder.create_topology(), conf)
    query = compiled.start(spark, name="stores", checkpoint=checkpoint)
    try:
        deadline = time.monotonic() + 120
        while not _acked(query) and time.monotonic() < deadline:
            query.awaitTermination(0.5)
        query.awaitTermination(_SETTLE_SECS)
        before = _acked(query)
        first = _batches(query)[-1]["batchId"]
        latencies = query._coordinator.metrics.latencies  # noqa: SLF001 # those of a span of time have no public door
        counts = latencies.counts.copy()
        query.awaitTermination(seconds)
        batches = [one for one in _batches(query) if one["batchId"] > first and one["numInputRows"]]
        if _acked(query) == before or not batches:
            raise RuntimeError(f"nothing was acked with a checkpoint at {checkpoint}")
        span = LatencyHistogram()
        span.counts = latencies.counts - counts
        latency = (span.summary() or {})["p50"]
    finally:
        query.stop()
    times = {name: statistics.median(one["durationMs"].get(key, 0) for one in batches) for name, key in _STEPS.items()}
    return Measured(len(batches), {**times, "complete latency": latency})


def _acked(query: Any) -> int:
    return int(query.status_info().acked)


def _batches(query: Any) -> list[dict[str, Any]]:
    return [dict(one) for one in query.recentProgress]


def markdown(found: Mapping[str, Sequence[Measured]], places: Sequence[str], seconds: float) -> str:
    """Returns a table: each place beside the first one, by the medians of its rounds."""
    first, *others = places
    heads = {LOCAL: "process", MACHINE: "machine"} if MACHINE in places else {}
    lines = [
        "<!-- Written by `python -m lab.benchmarks.studies.stores --docs`. Don't edit. -->",
        "",
        f"Word count, {_RATE:.0f} sentences a second, {len(found[first])} round(s) of {seconds:.0f} s each in one "
        "session. Medians in ms, and as multiples of the first column.",
        "",
        "| " + " | ".join(["", *(heads.get(place, place) for place in places)]) + " |",
        "|---|" + "--:|" * len(places),
    ]
    for name in found[first][0].times:
        middle = {place: statistics.median(one.times[name] for one in found[place]) for place in places}
        own = middle[first]
        cells = [f"{own:.0f}", *(f"{middle[place]:.0f} ({middle[place] / max(own, 1.0):.1f} x)" for place in others)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.studies.stores", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
