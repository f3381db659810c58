"""The processor time of the Python side of a topology, in one process and without Spark; it decides what a case buys.

Usage: python -m lab.benchmarks.studies.python_side [WORKLOAD ...] [--without CASE | --against FOLDER]
                                                    [--pairs N] [--rounds N] [--in-turn]

A round is one micro-batch: the spout emits and cuts, both partitions execute all operators, the spout hears its acks.
All is real but Spark, whose state store is a dict. `--without` compares this tree with itself without one special
case of docs/decisions/optimisations.md; `--against` compares it with another checkout, which executes
its own study. Two processes of each side work in turn, round by round, so other work on the machine meets both sides
alike. The figure of a side is its least round, in µs of processor time for each tuple of the spout; the figure of the
comparison is the median over the pairs of processes. Less than 2 % between two sides is noise.

`--in-turn` compares both sides in one process: `--rounds` pairs of rounds, of which either side is the first in turn.
It finds smaller differences, as both sides have the same objects and caches.
"""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.feed import Control, Keys, Sentences
from lab.benchmarks.workloads.topologies import WORKLOADS, Count, End, Hop
from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    Config,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    Tuple,
)
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.batches.input import chunks_between
from storm_on_spark.runtime.batches.metrics.counters import Metrics
from storm_on_spark.runtime.batches.metrics.recorder import Recorder
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.batches.output import BatchOutput
from storm_on_spark.runtime.bolts.operator import execute_operator
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.emit import batch_routing
from storm_on_spark.runtime.in_process.micro_batch import execute_plan
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore

_ROOT = Path(__file__).parents[3]
_TUPLES = 1 << 15
"""Of the spout, in a round."""
_KEYS = 1_000_000
_WARM_UP = 3


class SplitNumbered(BaseBasicBolt):
    """Emits each word with its position: tuples of two values, as most topologies have."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Splits a sentence."""
        for position, word in enumerate(tup[0].split()):
            collector.emit([word, position])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares word and position."""
        declarer.declare(Fields("word", "position"))


class Window(BaseRichBolt):
    """Acks its tuples a micro-batch later, as a window does: the ackers hear of each of them twice."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Keeps the collector."""
        self.collector = collector
        self.held: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        """Holds a tuple, and lets go of the oldest if there are enough."""
        self.held.append(tup)
        if len(self.held) == _TUPLES // 2 + 1000:
            for each in self.held:
                self.collector.ack(each)
            self.held.clear()


def _window(control: str, source: str, options: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Sentences(control, source))
    builder.set_bolt("window", Window(), 2).shuffle_grouping("feed")
    return builder.create_topology()


def _pairs(control: str, source: str, options: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feed", Sentences(control, source))
    builder.set_bolt("split", SplitNumbered(), 2).shuffle_grouping("feed")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))
    return builder.create_topology()


def _keys(count: int) -> Callable[[str, str, Any], Topology]:
    def build(control: str, source: str, options: Any) -> Topology:
        builder = TopologyBuilder()
        builder.set_spout("feed", Keys(control, source, count))
        builder.set_bolt("hop", Hop(), 2).shuffle_grouping("feed")
        builder.set_bolt("end", End(), 2).fields_grouping("hop", Fields("value"))
        return builder.create_topology()

    return build


TOPOLOGIES: dict[str, Callable[[str, str, Any], Topology]] = {
    "per-tuple": WORKLOADS["word count"],
    "columnar": WORKLOADS["word count, columnar"],
    "columnar-bolts": WORKLOADS["word count, columnar bolts"],
    "pairs": _pairs,
    "pystorm": WORKLOADS["word count, pystorm"],
    "window": _window,
    "join": WORKLOADS["join"],
    "10-keys": _keys(10),
    "1M-keys": _keys(_KEYS),
}
"""Word count per tuple, columnar, and columnar behind a spout per tuple; with two values; tuples held; streams joined;
integers as keys."""


class Python:
    """The Python side of one topology.

    Args:
        workload: of `TOPOLOGIES`.
        folder: for the spout's log and the input; empty.
    """

    def __init__(self, workload: str, folder: Path) -> None:
        control = Control(folder / "control.json")
        control.set(None)
        source = sentences_file(folder / "sentences.txt")
        topology = TOPOLOGIES[workload](str(control.path), str(source), {})
        conf = {Config.TOPOLOGY_ACKER_EXECUTORS: 1, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3600}
        self.plan = place(compile_graph(topology, effective_conf(conf)), 2)
        self.worker = Worker(make_spec(self.plan, "python-side", "python-side-1", "start", ()))
        self.folder = folder
        (number,) = self.plan.components["feed"].tasks
        (folder / "spouts").mkdir()
        self.spout = open_spout_task(
            self.worker.spec, self.worker.wiring, self.worker.context(number), folder / "spouts" / str(number), self._ms
        )
        self.spout.activate()
        self.state: defaultdict[int, MemoryStore] = defaultdict(MemoryStore)
        self.metrics = Metrics(self.plan, recorder=Recorder(folder / "metrics"))
        self.metrics.recorder.open(1, None, {name: found.tasks for name, found in self.plan.components.items()})
        self.batch, self.start = 0, Offset()

    def _ms(self) -> int:
        return self.batch

    def round(self, tuples: int = _TUPLES) -> float:
        """Executes a micro-batch; returns its processor time in µs for each tuple of the spout."""
        began, spout, count = time.process_time(), self.spout, 0
        now = spout.now()
        while count < tuples:
            while spout.fresh < min(spout.most_cut_tuples, tuples - count):
                spout.next_tuple(now)
                now = spout.now()
            count += spout.fresh
            cut = spout.cut()
        written = spout.log.written
        end = Offset({spout.task: written.position}, self.batch, epochs={spout.task: written.epoch})
        self._execute(end)
        self.start, self.batch = end, self.batch + 1
        assert spout.pending_count() <= tuples, "messages of earlier micro-batches are pending"
        used = 1e6 * (time.process_time() - began) / count
        spout.trim(cut.end)
        return used

    def _execute(self, end: Offset) -> None:
        worker = self.worker
        rows = execute_plan(
            self.plan,
            self.batch,
            partial(chunks_between, worker.wiring, self.folder, self.start, end),
            lambda operator, chunks, info: execute_operator(worker, operator, chunks, info, self.state.__getitem__),
        )
        output = BatchOutput.of(body for _, body in rows)
        self.metrics.add_reports(output.reports, self.batch)
        for body in output.outcomes:
            self.spout.settle(self.batch, *chunk.read_outcome(chunk.read_header(body), body))


# --- special cases that can be left out ---------------------------------------------------------------------------


@contextmanager
def _set(module: str, **values: Any) -> Iterator[None]:
    """Changes what a module or a class has under some names."""
    found = pkgutil.resolve_name(f"storm_on_spark.{module}")
    before = {name: getattr(found, name) for name in values}
    for name, value in values.items():
        setattr(found, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(found, name, value)


_NEVER = 1 << 62
_read_rows = chunk.read_rows


def _rows_at_once(header: chunk.Header, payload: memoryview) -> Any:
    return list(_read_rows(header, payload))


@contextmanager
def _uncounted() -> Iterator[None]:
    """Counts nothing by window, and no latencies: what remains are the totals that a topology had before windows."""
    with (
        _set(
            "runtime.bolts.durations.Durations",
            amounts=lambda self, inputs, ledger, **_: {},
            each=lambda self, execute: execute,
            timed=lambda self, parts: parts,
            took=lambda self, *_: None,
        ),
        _set("runtime.bolts.stage", sent_amounts=lambda sent: {}, bin_of=lambda milliseconds: 0),
        _set("runtime.batches.metrics.recorder.Recorder", count=lambda self, *_: None),
        _set("metrics.latency.Latencies", add=lambda self, milliseconds: None),
    ):
        yield


CASES: dict[str, Callable[[], Any]] = {
    "reused-tuples": lambda: _set("runtime.bolts.bolt_task", _ALONE=0),
    "lazy-rows": lambda: _set("runtime.codec.chunk", read_rows=_rows_at_once),
    "numbered-arrow-texts": lambda: _set("runtime.codec.arrow_texts", _LEAST=_NEVER),
    "each-key-once": lambda: _set("runtime.emit.batch_routing", _by_field=batch_routing._by_row),  # noqa: SLF001
    "cached-integers": lambda: _set("runtime.emit.output", LIMIT=0),
    "computed-integers": lambda: _set("runtime.emit.output", LIMIT=_NEVER),
    "text-in-one-call": lambda: _set("runtime.emit.output.TaskOutput", owners=lambda self, stream: None),
    "metrics": _uncounted,
    "one-box": lambda: _set("runtime.emit.output._StreamOutput", only=None),
}
"""Special cases of the runtime, and how each is switched off. `metrics` is none: it is what counting costs."""


# --- the processes ------------------------------------------------------------------------------------------------


def _child(workload: str, without: str | None) -> None:
    """Executes a round for each line that comes in, and writes its figure."""
    with ExitStack() as stack:
        if without:
            stack.enter_context(CASES[without]())
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="python-side-"))
        side = Python(workload, Path(folder))
        for _ in range(_WARM_UP):
            side.round()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(json.dumps(side.round()), flush=True)


class _Side:
    """A process that executes rounds."""

    def __init__(self, workload: str, folder: Path, without: str | None) -> None:
        command = [sys.executable, str(folder / Path(__file__).relative_to(_ROOT)), workload, "--child"]
        command += ["--without", without] if without else []
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> str:
        """Returns the next line that it writes."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a side ended with exit code {self._process.wait()}")
        return line

    def round(self) -> float:
        """Returns the figure of one more round."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self.answer())

    def stop(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(workload: str, here: Path, there: Path | None, without: str | None, pairs: int, rounds: int) -> str:
    """Returns a line with the figures of one workload."""
    least: list[list[float]] = []
    alone = there is None and without is None
    for _ in range(pairs):
        sides = [_Side(workload, here, None)]
        if not alone:
            sides.append(_Side(workload, there or here, without))
        try:
            for side in sides:
                side.answer()
            found: list[list[float]] = [[] for _ in sides]
            for number in range(rounds):
                # Each side comes first as often as the other.
                for at in range(len(sides)) if number % 2 else reversed(range(len(sides))):
                    found[at].append(sides[at].round())
            least.append([min(times) for times in found])
        finally:
            for side in sides:
                side.stop()
    mine = statistics.median(each[0] for each in least)
    if alone:
        return f"{workload:10} {mine:8.3f} µs"
    other = statistics.median(each[1] for each in least)
    shares = sorted(100 * (1 - each[0] / each[1]) for each in least)
    share, low, high = statistics.median(shares), shares[0], shares[-1]
    return f"{workload:10} {other:8.3f} against {mine:8.3f} µs: {share:+5.1f} % ({low:+.1f} to {high:+.1f})"


def in_turn(workload: str, without: str, rounds: int) -> str:
    """Returns a line with the figures of one workload, of which both sides are in this process."""
    found: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="python-side-") as folder:
        side = Python(workload, Path(folder))
        for _ in range(_WARM_UP):
            side.round()
        for number in range(rounds):
            for at in (number % 2, 1 - number % 2):
                with CASES[without]() if at else nullcontext():
                    found[at].append(side.round())
    mine, other = (statistics.median(times) for times in found)
    low, share, high = statistics.quantiles([100 * (1 - one / two) for one, two in zip(*found, strict=True)], n=4)
    figures = f"{other:8.3f} against {mine:8.3f} µs: {share:+5.1f} %"
    return f"{workload:10} {figures} (half of the pairs {low:+.1f} to {high:+.1f})"


def main() -> int:
    """Prints a line for each workload."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of: {', '.join(TOPOLOGIES)}; default all")
    parser.add_argument("--without", choices=CASES, help="compare with this tree without a special case")
    parser.add_argument("--against", type=Path, help="compare with another checkout")
    parser.add_argument("--pairs", type=int, default=3, help="of processes")
    parser.add_argument("--rounds", type=int, default=15, help="of each process")
    parser.add_argument("--in-turn", action="store_true", help="compare in one process; with --without")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in TOPOLOGIES]
    if unknown:
        parser.error(f"{unknown[0]!r} is no workload; there are {', '.join(TOPOLOGIES)}")
    if options.child:
        _child(options.workloads[0], options.without)
        return 0
    if options.in_turn and options.without is None:
        parser.error("--in-turn needs --without")
    for workload in options.workloads or TOPOLOGIES:
        if options.in_turn:
            print(in_turn(workload, options.without, options.rounds), flush=True)
            continue
        print(compare(workload, _ROOT, options.against, options.without, options.pairs, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
