"""This project: a topology on a local session, fed by a spout whose rate the phases set."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.benchmarks import breakdown, progress
from lab.benchmarks.cases import FULL, Case, Phase
from lab.benchmarks.contenders import Figures, Setup, figures
from lab.benchmarks.measures import ProcessTree, grown, sizes
from lab.benchmarks.workloads.data import WORDS_PER_SENTENCE
from lab.benchmarks.workloads.feed import Control
from lab.benchmarks.workloads.topologies import WORKLOADS
from storm_on_spark import Config, compile_topology
from storm_on_spark.metrics.amounts import subtract
from storm_on_spark.metrics.latency import quantiles
from storm_on_spark.runtime.state.keyvalue.journal import ENTRIES
from storm_on_spark.runtime.state.keyvalue.pages import DIRECTORY, HEADER, PAGES
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_pending_roots, state_values

_START_SECS = 120.0
_FILL_SECS = 180.0
_SLOWEST = 10_000
"""Tuples a second that any machine can process."""
_FILLED = 50_000
"""Keys a second that any machine can process."""
_AFTER_RANGES = 600_000
_CHANGE_SECS = 60.0
_BACKLOG, _DRAIN_SECS = 100, 15.0
"""When the previous phase's remaining messages count as done, and how long that may take."""


def run(case: Case, setup: Setup) -> Figures:
    """Runs a topology on its own session and measures it."""
    if case.options.get("pinned"):
        # Only this case uses this process, and all processes that it starts are pinned with it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spark = local_session(case.options.get("master"))
    try:
        return run_on(spark, case, setup)
    finally:
        stop_session(spark)


def run_on(spark: Any, case: Case, setup: Setup) -> Figures:
    """Runs a topology on a session and measures it."""
    checkpoint = setup.folder / "checkpoint"
    measurement = _Measurement(spark, case, setup, checkpoint)
    conf = {
        Config.TOPOLOGY_ACKER_EXECUTORS: 1 if case.options.get("acked", True) else 0,
        # Pending messages must stay pending.
        Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3600,
        Config.TOPOLOGY_PROFILE: case.profile,
        **case.options.get("conf", {}),
    }
    topology = WORKLOADS[case.workload](str(measurement.control.path), str(setup.source), case.options)
    measurement.query = compile_topology(topology, conf).start(spark, name="benchmark", checkpoint=checkpoint)
    try:
        result = measurement.play()
    finally:
        measurement.query.stop()
    if case.options.get("restart"):
        result["start_reads"] = _read_at_a_start(spark, checkpoint)
        compiled, started = compile_topology(topology, conf), time.monotonic()
        measurement.query = compiled.start(spark, name="benchmark", checkpoint=checkpoint)
        try:
            result["restart_secs"] = measurement.first_ack() - started
        finally:
            measurement.query.stop()
    if case.workload == "pending":
        result |= _pending_state(spark, checkpoint)
    return result


class _Measurement:
    """One topology under measurement.

    Args:
        spark: the session that it runs on.
        case: the case.
        setup: the durations.
        checkpoint: the topology's checkpoint.
    """

    query: Any

    def __init__(self, spark: Any, case: Case, setup: Setup, checkpoint: Path) -> None:
        self._spark = spark
        self._case = case
        self._setup = setup
        self._checkpoint = checkpoint
        self._tree = ProcessTree()
        self._acked = case.options.get("acked", True)
        self.control = Control(setup.folder / "control.json")
        self._begin(FULL if "keys" in case.options else case.phases[0])

    def _begin(self, phase: Phase) -> None:
        self.control.set(phase.rate, phase.keys, phase.draw)

    def first_ack(self) -> float:
        """Waits for an ack; returns the monotonic seconds of it."""
        # Tuples that must stay pending come before the first tuple that is acked.
        patience = _START_SECS + self._case.options.get("held", 0) / _SLOWEST
        before = self._done()
        self._until(lambda: self._done() > before, patience, "acks anything")
        return time.monotonic()

    def play(self) -> Figures:
        """Measures the phases of the running topology."""
        result: Figures = {"first_ack_secs": self.first_ack() - self._setup.started}
        if self._case.options.get("held"):
            del result["first_ack_secs"]  # it waited for all held tuples
        self._fill()
        phases = {}
        for number, phase in enumerate(self._case.phases):
            self._begin(phase)
            if number and phase.rate is not None:
                most = _BACKLOG + 2 * phase.rate
                self.query.wait_until(lambda most=most: self.query.status_info().pending <= most, _DRAIN_SECS)
            self._tree.wait(self._setup.settle if number else self._setup.warm_up)
            phases[phase.name] = self._measure(phase)
        memory = {"memory_mb": self._tree.peak_memory_mb(), "worker_mb": self._tree.peak_worker_mb}
        return result | {"phases": phases} | memory

    def _fill(self) -> None:
        """Waits until all keys are in the state, or all messages that must stay pending are pending."""
        keys, each = self._case.options.get("keys", 0), self._case.options.get("each", 1)
        wanted, patience = max(-(-keys // each), self._case.options.get("held", 0)), _FILL_SECS + keys / _FILLED
        self._until(lambda: self.query.status_info().emitted >= wanted, patience, f"emits {wanted:,} tuples")
        if each > 1:
            # Micro-batches are sized by the time per tuple, and a range takes a second; wait until that has no more
            # effect.
            wanted += _AFTER_RANGES
        if "keys" in self._case.options:
            self._until(lambda: self._done() >= wanted, patience, f"acks {wanted:,} tuples")

    def _measure(self, phase: Phase) -> Figures:
        metrics = self.query._coordinator.metrics  # noqa: SLF001 # latencies of a span of time have no public door
        # From batch to batch, so that no part of one is counted.
        first, started = self._at_a_change(phase)
        cpu, files = self._tree.cpu_seconds(), sizes(self._checkpoint)
        latencies, executed = dict(metrics.latencies.bins), self._executed()
        began = time.time()
        if phase.rate == 0:
            # Measuring the memory of other processes takes more time than an idle topology.
            time.sleep(self._setup.seconds)
        else:
            self._tree.wait(self._setup.seconds)
        last, ended = self._at_a_change(phase)
        span = dict(metrics.latencies.bins)
        subtract(span, latencies)
        roots, seconds = last - first, ended - started
        written = grown(files, sizes(self._checkpoint))
        info = self.query.status_info()
        if info.error or info.failed:
            raise RuntimeError(f"the topology's figures are void: {info.failed} tuples failed, error {info.error}")
        return figures(
            roots,
            seconds,
            self._tree.cpu_seconds() - cpu,
            quantiles(span),
            tuples_per_second=(self._executed() - executed) / seconds,
            checkpoint_bytes_per_million=1e6 * written / roots if roots else None,
            **self._batches(began),
        )

    def _batches(self, began: float) -> Figures:
        """Returns the times of micro-batches since a moment, by the parts that Spark reports."""
        found = progress.recent(self.query, began)
        if not found:
            return {"batch_ms": None, "batch_parts_ms": None, "batches": 0}
        parts = breakdown.parts(found, breakdown.stages_of(self._spark, self.query.runId))
        median = statistics.median(each["durationMs"]["triggerExecution"] for each in found)
        return {"batch_ms": median, "batch_parts_ms": parts, "batches": len(found)}

    def _done(self) -> int:
        """Returns how many roots are done."""
        info = self.query.status_info()
        if self._acked:
            return int(info.acked)
        # Without ackers, acks say nothing: use the number of tuples that `count` has executed.
        return int(info.components["count"].executed // WORDS_PER_SENTENCE)

    def _executed(self) -> int:
        return sum(component.executed for component in self.query.status_info().components.values())

    def _at_a_change(self, phase: Phase) -> tuple[int, float]:
        value = self._done()
        deadline = time.monotonic() + _CHANGE_SECS
        while phase.rate != 0 and self._done() == value:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing was acked for {_CHANGE_SECS:.0f} s")
            time.sleep(0.005)
        return self._done(), time.monotonic()

    def _until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        if not self.query.wait_until(condition, seconds):
            reason = self.query.status_info().error or f"{seconds:.0f} s are over"
            raise TimeoutError(f"the topology ended before it {what}: {reason}")


def _read_at_a_start(spark: Any, checkpoint: Path) -> Figures:
    """Returns the bytes of key-value state, and how many of them a worker reads before it executes the first tuple."""
    sizes_of = {
        name: sum(len(value) for *_, value in state_values(spark, checkpoint, name))
        for name in (ENTRIES, HEADER, DIRECTORY, PAGES)
    }
    return {"bytes": sum(sizes_of.values()) - sizes_of[PAGES], "of": sum(sizes_of.values())}


def _pending_state(spark: Any, checkpoint: Path) -> Figures:
    """Returns the number of pending roots at the end of the topology, and their bytes in the state store."""
    roots = len(read_pending_roots(spark, checkpoint))
    size = sum(len(value) for *_, value in state_values(spark, checkpoint, "pending"))
    return {"pending_roots": roots, "pending_bytes_each": size / roots if roots else None}
