"""`make soak`: runs a word count for long, and tells whether memory, micro-batches and checkpoint stay as they are.

The first quarter is for settling down. What is compared are the medians of the last and the second quarter; of the
checkpoint the most, as it grows until old batches are removed. Exit codes: 0 all is flat, 1 something grows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.benchmarks import progress
from lab.benchmarks.measures import ProcessTree, sizes
from lab.benchmarks.targets import SOAK_LIMITS
from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.feed import Control
from lab.suite import command
from lab.suite.tables import Table

_RESULTS = Path(__file__).parents[1] / "soak.json"
_SAMPLES = 240
_START_SECS = 120.0
_CALM_SECS = 5.0


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment."""

    minutes: float
    acked: int
    memory_mb: float
    """Of all processes."""
    parts_mb: dict[str, float]
    """The same by kind of process."""
    batch_ms: float
    """Median of the micro-batches since the last sample."""
    checkpoint_mb: float
    checkpoint_files: int
    open_files: int
    """Files, sockets and the like that all processes have open."""


def last() -> dict[str, Any] | None:
    """Returns what the last soak left; None if there was none."""
    if not _RESULTS.exists():
        return None
    found: dict[str, Any] = json.loads(_RESULTS.read_text("utf-8"))
    return found


def ratios(samples: Sequence[Sample]) -> dict[str, float]:
    """Returns by figure how much of it there is in the last quarter for one in the second.

    Args:
        samples: at least four, in order.
    """
    quarter = len(samples) // 4
    second, fourth = samples[quarter : 2 * quarter], samples[-quarter:]

    def of(part: Sequence[Sample], name: str, summary: Callable[[list[float]], float]) -> float:
        return summary([float(getattr(sample, name)) for sample in part])

    found = {}
    for _, name, _ in SOAK_LIMITS:
        summary: Callable[[list[float]], float] = max if name == "checkpoint_mb" else statistics.median
        found[name] = of(fourth, name, summary) / of(second, name, summary)
    return found


def main() -> int:
    """Runs the soak; returns the exit code."""
    options = _options()
    screen = Console(stderr=True, highlight=False)
    command.exit_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        samples = _run(options.minutes, options.rate, folder, screen)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = ratios(samples)
    document = {
        "hours": options.minutes / 60,
        "rate": options.rate,
        "ratios": found,
        "samples": [asdict(sample) for sample in samples],
    }
    _RESULTS.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    command.hand_out(options, json.dumps(document), lambda console: _table(samples, found).show(console))
    return 0 if all(found[name] <= limit for _, name, limit in SOAK_LIMITS) else 1


def _run(minutes: float, rate: float, folder: Path, screen: Console) -> list[Sample]:
    from lab.benchmarks.workloads.topologies import WORKLOADS
    from storm_on_spark import Config, compile_topology
    from storm_on_spark.spark.session import local_session, stop_session

    control, checkpoint = Control(folder / "control.json"), folder / "checkpoint"
    control.set(rate)
    topology = WORKLOADS["word count"](str(control.path), str(sentences_file(folder / "sentences.txt")), {})
    spark = local_session()
    try:
        conf = {Config.TOPOLOGY_PROFILE: "latency"}
        query = compile_topology(topology, conf).start(spark, name="soak", checkpoint=checkpoint)
        try:
            if not query.wait_until(lambda: query.status_info().acked > 0, _START_SECS):
                raise TimeoutError(f"nothing was acked within {_START_SECS:.0f} s: {query.status_info().error}")
            return _watch(query, minutes, checkpoint, screen)
        finally:
            query.stop()
    finally:
        stop_session(spark)


def _watch(query: Any, minutes: float, checkpoint: Path, screen: Console) -> list[Sample]:
    tree = ProcessTree()
    started, every = time.monotonic(), 60 * minutes / _SAMPLES
    every = max(every, min(_CALM_SECS, 60 * minutes / 8))
    samples: list[Sample] = []
    while time.monotonic() - started < 60 * minutes:
        seen = time.time()
        time.sleep(every)
        info = query.status_info()
        if info.error or info.failed:
            raise RuntimeError(f"the topology failed, or {info.failed} of its tuples did: {info.error}")
        batches = [report["durationMs"]["triggerExecution"] for report in progress.recent(query, seen)]
        if not batches:
            raise RuntimeError(f"no micro-batch ended within {every:.0f} s")
        files, parts = sizes(checkpoint), tree.memory_mb()
        sample = Sample(
            minutes=round((time.monotonic() - started) / 60, 2),
            acked=info.acked,
            memory_mb=round(sum(parts.values()), 1),
            parts_mb=parts,
            batch_ms=statistics.median(batches),
            checkpoint_mb=round(sum(files.values()) / 1e6, 2),
            checkpoint_files=len(files),
            open_files=tree.open_files(),
        )
        samples.append(sample)
        screen.print(
            f"{sample.minutes:.1f} min: {sample.acked:,} acked, {sample.memory_mb:,.0f} MB {sample.parts_mb}, "
            f"batch {sample.batch_ms:.0f} ms, checkpoint {sample.checkpoint_mb:.1f} MB in {len(files):,} files, "
            f"{sample.open_files:,} open",
            markup=False,
        )
    return samples


def _table(samples: Sequence[Sample], found: dict[str, float]) -> Table:
    quarter = len(samples) // 4
    rows = []
    for what, name, limit in SOAK_LIMITS:
        parts = samples[quarter : 2 * quarter], samples[-quarter:]
        medians = [statistics.median(getattr(sample, name) for sample in part) for part in parts]
        verdict = "met" if found[name] <= limit else "not met"
        rows.append([what, *(f"{median:,.1f}" for median in medians), f"{found[name]:.2f}", f"{limit:.2f}", verdict])
    title = f"Soak: {samples[-1].minutes:.0f} minutes, {samples[-1].acked:,} acked"
    return Table(title, ("", "second quarter", "last quarter", "ratio", "at most", ""), rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.studies.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=_minutes, default=60.0, help="how long (60)")
    parser.add_argument("--rate", type=float, default=2000.0, help="sentences per second (2000)")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


def _minutes(text: str) -> float:
    minutes = float(text)
    if minutes < 0.5:
        raise argparse.ArgumentTypeError(f"at least half a minute, so that there are quarters, not {minutes:g}")
    return minutes


if __name__ == "__main__":
    sys.exit(main())
