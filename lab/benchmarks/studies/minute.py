"""Latency over a minute, with the checkpoints in it: word count in real time at 1,000 sentences a second.

Usage: python -m lab.benchmarks.studies.minute [--seconds N] [--rate N] [--profile NAME] [--storage KIND] [--docs]

The spout notes for each sentence when it was acked and how long that took. `--docs` draws
docs/performance/minute.svg: for each tenth of a second the median and the slowest message, and the micro-batches as
bars behind them. It also writes what each process took of the processors into docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks import progress
from lab.benchmarks.measures import ProcessTree
from lab.benchmarks.plots import over_time
from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.feed import Control, Sentences
from lab.benchmarks.workloads.topologies import Count, Split, word_count
from lab.faults.stores import KINDS, server
from lab.suite.pages import put_between
from lab.suite.tables import Table
from storm_on_spark import Config, compile_topology
from storm_on_spark.spark.session import local_session, stop_session

_RATE = 1000
_STEP_SECS = 0.1
_WARM_UP_SECS = 15.0
_START_SECS = 120.0
_PARTS = {
    "spout host": "storm_on_spark.runtime.spouts.spout_host",
    "live process": "storm_on_spark.runtime.live.processes.process",
    "Python workers": "storm_on_spark.spark.worker_daemon",
}
_DOCS = Path(__file__).parents[3] / "docs"
_PICTURE = _DOCS / "performance" / "minute.svg"
_PAGE = _DOCS / "performance.md"
_BEGIN, _END = "<!-- minute: begin -->", "<!-- minute: end -->"


class _Notes:
    """Acks on their way to a file; no state."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("ab", buffering=1 << 14)  # noqa: SIM115 # as long as the process
        self.emitted: dict[int, float] = {}

    def __reduce__(self) -> str:
        raise TypeError("created by open")

    def acked(self, number: int) -> None:
        now = time.time()
        began = self.emitted.pop(number, None)
        if began is not None:
            self._file.write(np.array([now, now - began]).tobytes())

    def flush(self) -> None:
        self._file.flush()


class Timed(Sentences):
    """Sentences, whose acks are noted in a file beside the input."""

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.notes = _Notes(notes_of(self.source))

    def send(self, number: int) -> None:
        self.notes.emitted[number] = time.time()
        super().send(number)

    def ack(self, msg_id: int) -> None:
        self.notes.acked(msg_id)

    def close(self) -> None:
        self.notes.flush()


def notes_of(source: str) -> str:
    """Returns the file of the acks of those sentences."""
    return f"{source}.acks"


def measured(
    seconds: float, rate: int = _RATE, profile: str = "realtime", storage: str = KINDS[0]
) -> tuple[np.ndarray, list[tuple[float, float]], dict[str, float]]:
    """Runs the topology.

    Args:
        seconds: how long is measured.
        rate: sentences a second.
        profile: the topology's.
        storage: where the checkpoint is, one of `KINDS`.

    Returns:
        Seconds since the beginning and ms, a row for each ack; when micro-batches began and ended; and how many
        cores each kind of process took.
    """
    with tempfile.TemporaryDirectory(prefix="minute-") as name, server(storage, Path(name) / "store") as running:
        folder = Path(name)
        store = None if running is None else running.folder("tmp/checkpoint")
        checkpoint = str(folder / "checkpoint") if store is None else store.url
        source = sentences_file(folder / "sentences.txt")
        control = Control(folder / "control.json")
        control.set(rate)
        topology = word_count(Split, Count, Timed)(str(control.path), str(source), {})
        conf = {Config.TOPOLOGY_ACKER_EXECUTORS: 1, Config.TOPOLOGY_PROFILE: profile}
        spark = local_session(None, {} if store is None else store.conf, checkpoint)
        try:
            query = compile_topology(topology, conf).start(spark, name="minute", checkpoint=checkpoint)
            try:
                if not query.wait_until(lambda: query.status_info().acked > 0, _START_SECS):
                    raise TimeoutError(f"nothing was acked for {_START_SECS:.0f} s")
                time.sleep(_WARM_UP_SECS)
                processes = ProcessTree()
                before, began = processes.cpu_by_part(_PARTS), time.time()
                time.sleep(seconds)
                after, took = processes.cpu_by_part(_PARTS), time.time() - began
                batches = progress.recent(query, began - _WARM_UP_SECS)
            finally:
                query.stop()
        finally:
            stop_session(spark)
        acks = np.fromfile(notes_of(str(source))).reshape(-1, 2)
    acks = acks[(acks[:, 0] >= began) & (acks[:, 0] < began + seconds)] * (1, 1000) - (began, 0)
    spans = (span(batch, began) for batch in batches)
    cores = {part: max(0.0, after[part] - before[part]) / took for part in after}
    return acks, [(start, end) for start, end in spans if end > 0 and start < seconds], cores


def span(batch: Mapping[str, Any], began: float) -> tuple[float, float]:
    """Returns when a micro-batch began and ended, in seconds since a moment; without its wait for the next barrier."""
    end = progress.end(dict(batch))
    durations = batch["durationMs"]
    return end - (durations["triggerExecution"] - durations["latestOffset"]) / 1000 - began, end - began


def steps(acks: np.ndarray, seconds: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Returns the medians and the slowest of each tenth of a second that has acks, as seconds and ms.

    Example:
        >>> steps(np.array([[0.01, 1.0], [0.02, 2.0], [0.03, 9.0], [0.25, 4.0]]), 1.0)
        ([(0.05, 2.0), (0.25, 4.0)], [(0.05, 9.0), (0.25, 4.0)])
    """
    medians, most = [], []
    for number in range(round(seconds / _STEP_SECS)):
        within = acks[(acks[:, 0] // _STEP_SECS).astype(int) == number, 1]
        if len(within):
            middle = round((number + 0.5) * _STEP_SECS, 3)
            medians.append((middle, float(np.median(within))))
            most.append((middle, float(within.max())))
    return medians, most


def cores_table(cores: Mapping[str, float], rate: int = _RATE) -> str:
    """Returns what each kind of process took as a table, with the sum.

    Example:
        >>> print(cores_table({"driver": 0.25, "jvm": 0.125}))
        | processes | cores | µs a message |
        |---|--:|--:|
        | driver | 0.25 | 250 |
        | jvm | 0.12 | 125 |
        | all | 0.38 | 375 |
    """
    rows = [*cores.items(), ("all", sum(cores.values()))]
    cells = [(part, f"{each:.2f}", f"{1e6 * each / rate:.0f}") for part, each in rows]
    return "\n".join(Table("", ("processes", "cores", "µs a message"), cells).markdown())


def _within(acks: np.ndarray, spans: Sequence[tuple[float, float]]) -> np.ndarray:
    inside = np.zeros(len(acks), bool)
    for start, end in spans:
        inside |= (acks[:, 0] >= start) & (acks[:, 0] < end)
    return inside


def main() -> int:
    """Prints what the minute was like."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long is measured (60)")
    parser.add_argument("--rate", type=int, default=_RATE, help=f"sentences a second ({_RATE})")
    parser.add_argument("--profile", default="realtime", help="topology.profile (realtime)")
    parser.add_argument("--storage", choices=KINDS, default=KINDS[0], help="where the checkpoint is (local)")
    parser.add_argument("--docs", action="store_true", help=f"draw docs/performance/{_PICTURE.name}")
    options = parser.parse_args()
    if not 1 <= options.seconds <= 3600:
        parser.error(f"--seconds must be from 1 to 3600, not {options.seconds:g}")
    if not 1 <= options.rate <= 100_000:
        parser.error(f"--rate must be from 1 to 100000, not {options.rate}")
    if options.docs and (options.rate, options.profile, options.storage) != (_RATE, "realtime", KINDS[0]):
        parser.error("--docs is for real time at the usual rate, with the checkpoint in a directory")
    acks, spans, cores = measured(options.seconds, options.rate, options.profile, options.storage)
    inside = _within(acks, spans)
    for what, chosen in (("all", acks), ("in micro-batches", acks[inside]), ("between them", acks[~inside])):
        if len(chosen):
            figures = np.percentile(chosen[:, 1], (50, 95, 99, 100))
            print(
                "{:18} {:7,} acks, p50 {:.2f}, p95 {:.2f}, p99 {:.2f}, most {:.2f} ms".format(
                    what, len(chosen), *figures
                )
            )
    if spans:
        lengths = [1000 * (end - start) for start, end in spans]
        print(f"{len(spans)} micro-batches of {statistics.median(lengths):.0f} ms (median)")
    table = cores_table(cores, options.rate)
    print(table)
    if options.docs:
        put_between(
            _PAGE, _BEGIN, _END, f"<!-- Written by `python -m lab.benchmarks.studies.minute --docs`. -->\n\n{table}\n"
        )
        medians, most = steps(acks, options.seconds)
        title = f"Latency in real time at {_RATE:,} sentences per second"
        _PICTURE.write_text(over_time(title, "ms", options.seconds, medians, most, spans), "utf-8")
    return 0


if __name__ == "__main__":
    # Workers import the spout by its module's name.
    from lab.benchmarks.studies import minute

    sys.exit(minute.main())
