"""What a topology costs by the number of executors: throughput, and the driver's part of each micro-batch.

Usage: python -m lab.benchmarks.studies.executors [--seconds N] [--docs]

A word count, tuple by tuple, on a real cluster of Spark's standalone mode, with a worker and an executor for each
machine that it stands for, all on this one. The partitions and the tasks of each component are as many as the
executors, and each executor has a spout host. Once spouts emit as fast as they can, once at a low rate. All executors
share this machine's cores, so throughput can't grow with them: what is shown is what the driver does, and what each
executor adds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from lab.benchmarks import progress
from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.feed import Control, Sentences
from lab.benchmarks.workloads.topologies import Count, Split
from lab.suite import command
from lab.suite.pages import put_between
from lab.suite.tables import cores
from storm_on_spark import Config, Fields, Topology, TopologyBuilder, compile_topology
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.testing.servers.standalone import StandaloneCluster

BEGIN, END = "<!-- executors: begin -->", "<!-- executors: end -->"
EXECUTORS = (1, 2, 4, 8)
_ROOT = Path(__file__).parents[3]
_PAGE = _ROOT / "docs" / "performance.md"
_SLOTS = 2
"""Of an executor: its spout host holds one."""
_LOW_RATE = 200.0
"""Sentences a second of all spout tasks together."""
_START_SECS, _SETTLE_SECS, _LOOK_SECS = 180.0, 10.0, 0.05


@dataclass(frozen=True)
class Figures:
    """Of one number of executors and one load."""

    executors: int
    rate: float | None
    """Sentences a second that were asked for; None for as fast as it goes."""
    acked: float
    """Sentences a second."""
    batches: int
    """Micro-batches that were measured."""
    batch_ms: float
    """Median time of a micro-batch."""
    python_ms: float
    """Processor time of the driver's Python per micro-batch."""
    jvm_ms: float
    """The same of its JVM."""
    executor_ms: float
    """Processor time of each executor per micro-batch: its JVM, Python workers and spout host."""
    executor_mb: float
    """Memory of each executor; pages that processes share count in parts."""


def main() -> int:
    """Measures; prints the table."""
    options = _options()
    command.exit_on_sigterm()
    # Executors import these topologies, as they would a user's module that is installed everywhere.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = []
    for count in EXECUTORS:
        for figures in measure(count, options.seconds):
            print(figures, file=sys.stderr)
            found.append(figures)
    text = markdown(found, options.seconds)
    sys.stdout.write(text)
    if options.docs:
        put_between(_PAGE, BEGIN, END, text)
    return 0


def measure(executors: int, seconds: float) -> list[Figures]:
    """Measures both loads with one number of executors.

    Args:
        executors: how many.
        seconds: of each load.

    Raises:
        RuntimeError: nothing was acked, or there is another number of executors.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="executors-")))
        cluster = stack.enter_context(StandaloneCluster(folder / "spark", executors, _SLOTS, "1g"))
        os.environ.update(cluster.environment)
        conf = cluster.conf | {
            "spark.cores.max": str(_SLOTS * executors),
            "spark.scheduler.minRegisteredResourcesRatio": "1",
        }
        spark = local_session(cluster.master, conf)
        stack.callback(stop_session, spark)
        control = Control(folder / "control.json")
        control.set(_LOW_RATE / executors)
        topology = _word_count(control, sentences_file(folder / "sentences.txt"), executors)
        settings = {
            Config.TOPOLOGY_WORKERS: executors,
            Config.TOPOLOGY_PARTITIONS: executors,
            Config.TOPOLOGY_ACKER_EXECUTORS: executors,
            Config.TOPOLOGY_SPOUTS_PLACEMENT: "executors",
            Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 600,
        }
        query = compile_topology(topology, settings).start(spark, name="executors", checkpoint=folder / "checkpoint")
        stack.callback(query.stop)
        if not query.wait_until(lambda: query.status_info().acked > 0, _START_SECS):
            raise RuntimeError(f"nothing was acked within {_START_SECS:.0f} s: {query.status_info().error}")
        there = {host: len(cluster.executors(host)) for host in cluster.workers}
        if set(there.values()) != {1}:
            raise RuntimeError(f"each worker should have one executor, and they have {there}")
        meter = _Meter(cluster, int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()))  # type: ignore[union-attr]  # noqa: SLF001 # no public way
        found = []
        for rate in (_LOW_RATE, None):
            control.set(None if rate is None else rate / executors)
            query.awaitTermination(_SETTLE_SECS)
            found.append(_span(query, meter, executors, rate, seconds))
        return found


def _word_count(control: Control, source: Path, executors: int) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(str(control.path), str(source)), executors)
    builder.set_bolt("split", Split(), executors).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), executors).fields_grouping("split", Fields("word"))
    return builder.create_topology()


class _Meter:
    """Processor time of the driver and of all executors, in seconds since they started."""

    def __init__(self, cluster: StandaloneCluster, jvm: int) -> None:
        self._cluster = cluster
        self._jvm = psutil.Process(jvm)

    def seconds(self) -> tuple[float, float, float]:
        """Returns those of the driver's Python, of its JVM, and of all executors."""
        executors = sum(_seconds(process) for process in self._executors())
        return time.process_time(), _seconds(self._jvm), executors

    def executors_mb(self) -> float:
        """Returns the memory of all executors."""
        total = 0.0
        for process in self._executors():
            try:
                total += process.memory_full_info().pss / 1e6
            except psutil.Error:
                continue
        return total

    def _executors(self) -> list[psutil.Process]:
        found = []
        for worker in self._cluster.workers.values():
            for pid in session_members(worker.pid):
                # The worker's own JVM starts the executor, and does nothing else.
                if pid != worker.pid:
                    try:
                        found.append(psutil.Process(pid))
                    except psutil.NoSuchProcess:
                        continue
        return found


def _seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _span(query: Any, meter: _Meter, executors: int, rate: float | None, seconds: float) -> Figures:
    """Measures from the end of a micro-batch to that of another."""
    first, acked = _batch_end(query), query.status_info().acked
    began, started, before = time.time(), time.monotonic(), meter.seconds()
    query.awaitTermination(seconds)
    last = _batch_end(query)
    took, after, info = time.monotonic() - started, meter.seconds(), query.status_info()
    # The last report may be of the moment.
    times = [report["durationMs"]["triggerExecution"] for report in progress.recent(query, began - 1)]
    batches = last - first
    if info.error or info.failed or not times or batches < 1 or info.acked == acked:
        raise RuntimeError(f"{executors} executors: {batches} micro-batches, {info.failed} failed: {info.error}")
    python, jvm, theirs = (1000 * (end - begin) / batches for begin, end in zip(before, after, strict=True))
    return Figures(
        executors,
        rate,
        (info.acked - acked) / took,
        batches,
        statistics.median(times),
        python,
        jvm,
        theirs / executors,
        meter.executors_mb() / executors,
    )


def _batch_end(query: Any) -> int:
    """Waits until a micro-batch has ended, and returns its number."""
    before, deadline = _last_batch(query), time.monotonic() + _START_SECS
    while (found := _last_batch(query)) == before:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no micro-batch ended within {_START_SECS:.0f} s: {query.status_info().error}")
        time.sleep(_LOOK_SECS)
    return found


def _last_batch(query: Any) -> int:
    report = query.lastProgress
    return -1 if report is None else int(report["batchId"])


def markdown(found: Sequence[Figures], seconds: float) -> str:
    """Returns a table for each load, as Markdown.

    Args:
        found: the figures.
        seconds: how long each of them was measured.
    """
    lines = [
        "<!-- Written by `python -m lab.benchmarks.studies.executors --docs`. Don't edit. -->",
        "",
        f"Word count, tuple by tuple, {seconds:g} s each; {cores()} cores for all executors and the driver together.",
    ]
    titles: Mapping[float | None, str] = {
        _LOW_RATE: f"At {_LOW_RATE:g} sentences a second of all spouts together:",
        None: "As fast as it goes:",
    }
    for rate, title in titles.items():
        lines += [
            "",
            title,
            "",
            "| executors | sentences/s | micro-batches | micro-batch ms | driver, Python CPU ms | driver, JVM CPU ms | "
            "each executor, CPU ms | each executor, MB |",
            "|" + "--:|" * 8,
        ]
        lines += [
            f"| {one.executors} | {one.acked:,.0f} | {one.batches} | {one.batch_ms:,.0f} | {one.python_ms:.1f} | "
            f"{one.jvm_ms:,.0f} | {one.executor_ms:,.0f} | {one.executor_mb:,.0f} |"
            for one in found
            if one.rate == rate
        ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.studies.executors", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
