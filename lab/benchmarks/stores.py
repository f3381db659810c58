"""What a checkpoint in a store costs: micro-batches and complete latency on a directory, S3 and HDFS, in one run.

Usage: python -m lab.benchmarks.stores [--rounds N] [--seconds N] [--docs]

One Spark session runs a word count with each checkpoint in turn, as often as there are rounds. The servers are moto's
and an HDFS with two data nodes, on this machine. Only the ratios mean something: other work on the machine meets all
of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.faults.stores import KINDS, Server, server
from lab.load.topology import Pacer
from lab.suite.pages import put_between
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Config, Fields, TopologyBuilder, compile_topology
from storm_on_spark.spark.session import local_session, stop_session

BEGIN, END = "<!-- stores: begin -->", "<!-- stores: end -->"
_PAGE = Path(__file__).parents[2] / "docs" / "storage.md"
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
    """Measures; prints the table."""
    options = _options()
    found: dict[str, list[Measured]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="stores-") as folder, ExitStack() as stack:
        base = Path(folder)
        servers = {kind: stack.enter_context(server(kind, base / f"server-{kind}")) for kind in KINDS}
        conf = {key: value for store in servers.values() if store for key, value in store.folder("x").conf.items()}
        # The URL has the session fetch what S3 needs.
        spark = local_session("local[2]", conf, "s3a://bucket/x")
        stack.callback(stop_session, spark)
        for number in range(options.rounds):
            for kind in KINDS:
                place = _checkpoint(servers[kind], base, f"{kind}-{number}")
                found[kind].append(_measure(spark, place, options.seconds))
                last = found[kind][-1]
                print(f"{kind}: {last.batches} micro-batches, {dict(last.times)}", file=sys.stderr)
    table = markdown(found, options.seconds)
    sys.stdout.write(table)
    if options.docs:
        put_between(_PAGE, BEGIN, END, table)
    return 0


def _checkpoint(store: Server | None, base: Path, name: str) -> str:
    return str(base / name) if store is None else store.folder(name).url


def _measure(spark: Any, checkpoint: str, seconds: float) -> Measured:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", Split()).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    compiled = compile_topology(builder.create_topology(), {Config.TOPOLOGY_WORKERS: 1})
    query = compiled.start(spark, name="stores", checkpoint=checkpoint)
    try:
        deadline = time.monotonic() + 120
        while not _acked(query) and time.monotonic() < deadline:
            query.awaitTermination(0.5)
        query.awaitTermination(_SETTLE_SECS)
        before = _acked(query)
        first = _batches(query)[-1]["batchId"]
        query.awaitTermination(seconds)
        batches = [one for one in _batches(query) if one["batchId"] > first and one["numInputRows"]]
        if _acked(query) == before or not batches:
            raise RuntimeError(f"nothing was acked with a checkpoint at {checkpoint}")
        info = query.status_info()
    finally:
        query.stop()
    latency = (info.complete_latency_ms or {}).get("p50", 0.0)
    times = {name: statistics.median(one["durationMs"].get(key, 0) for one in batches) for name, key in _STEPS.items()}
    return Measured(len(batches), {**times, "complete latency": latency})


def _acked(query: Any) -> int:
    return int(query.status_info().acked)


def _batches(query: Any) -> list[dict[str, Any]]:
    return [dict(one) for one in query.recentProgress]


def markdown(found: Mapping[str, list[Measured]], seconds: float) -> str:
    """Returns the table: ratios to the directory, by rounds' medians."""
    rounds = len(found[KINDS[0]])
    lines = [
        "<!-- Written by `python -m lab.benchmarks.stores --docs`. Don't edit. -->",
        "",
        f"Word count, {_RATE:.0f} sentences a second, {rounds} round(s) of {seconds:.0f} s each in one session; "
        "medians, as multiples of the local disk's.",
        "",
        "| | local | " + " | ".join(KINDS[1:]) + " |",
        "|---|--:|" + "--:|" * len(KINDS[1:]),
    ]
    for name in found[KINDS[0]][0].times:
        middle = {kind: statistics.median(one.times[name] for one in found[kind]) for kind in KINDS}
        own = middle[KINDS[0]]
        cells = [f"{middle[kind] / own:.1f}" if own else "" for kind in KINDS[1:]]
        lines.append(f"| {name} | 1 ({own:.0f} ms) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.stores", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/storage.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
