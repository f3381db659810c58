"""The way of one message in real time, part by part, in one process and without Spark.

Usage: python -m lab.benchmarks.studies.message_way [--messages N] [--pause MS] [--docs]

All is real but the socket: what goes over it is packed and unpacked here. Each message of word count has a cut and a
round of its own. A part is the median over all messages, with both quartiles. With a pause before each message it
finds the processor's caches as whoever had them in the meantime left them. `--docs` draws
docs/performance/message-way.svg.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab.benchmarks.plots import Bar, bars
from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.feed import Control
from lab.benchmarks.workloads.topologies import WORKLOADS
from storm_on_spark import Config
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.execution.rounds import ROUNDS, Round, RoundLog
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.runtime.spouts.messages import Acked, Settle, Written
from storm_on_spark.runtime.spouts.opening import open_spout_task

PARTS = (
    "emit: next_tuple",
    "cut: to the spout's log",
    "to the live process: pack, unpack",
    "round: bolts and acker",
    "round: to its file",
    "to the spout: pack, unpack",
    "ack",
)
_WARM_UP = 300
_PICTURE = Path(__file__).parents[3] / "docs" / "performance" / "message-way.svg"


class Way:
    """A spout and live tasks that execute what it emits.

    Args:
        folder: for the logs; empty.
    """

    def __init__(self, folder: Path) -> None:
        control = Control(folder / "control.json")
        control.set(None)
        topology = WORKLOADS["word count"](str(control.path), str(sentences_file(folder / "sentences.txt")), {})
        conf = {Config.TOPOLOGY_ACKER_EXECUTORS: 1, Config.TOPOLOGY_PROFILE: "realtime"}
        plan = place(compile_graph(topology, effective_conf(conf)), 1)
        worker = Worker(make_spec(plan, "message-way", "message-way-1", "start", (), str(folder)))
        (number,) = plan.components["feed"].tasks
        (folder / "spouts").mkdir()
        log = folder / "spouts" / str(number)
        self._spout = open_spout_task(worker.spec, worker.wiring, worker.context(number), log, _ms)
        self._spout.activate()
        self._rounds = RoundLog(folder / ROUNDS, sync=False)
        self._noted = 0.0
        self._tasks = LiveTasks(worker, Adopt("", b"", b"a state", Offset({}, _ms()), {}, ()), self._note)
        self._rounds.follow(self._tasks.tokens)

    def _note(self, done: Round) -> None:
        began = time.perf_counter()
        self._rounds.append(done)
        self._noted = time.perf_counter() - began

    def message(self) -> Iterator[float]:
        """Yields how many seconds each of `PARTS` takes for one message."""
        spout = self._spout
        yield from self._timed(lambda: spout.next_tuple(spout.now()))
        yield from self._timed(spout.cut)
        cut = spout.log.last
        assert cut is not None
        written = Written(spout.task, cut.position, cut.mark, spout.cut_entries)
        yield from self._timed(lambda: self._tasks.take(pickle.loads(pickle.dumps(written, 5))))
        began = time.perf_counter()
        told = self._tasks.execute(_ms())
        yield time.perf_counter() - began - self._noted
        yield self._noted
        began = time.perf_counter()
        heard = pickle.loads(pickle.dumps(told, 5))
        yield time.perf_counter() - began
        began = time.perf_counter()
        for each in heard:
            if isinstance(each, Settle):
                spout.settle(each.batch, each.ended.roots(), each.ended.each_code())
            elif isinstance(each, Acked):
                spout.acked(each.roots)
        yield time.perf_counter() - began
        if spout.pending_count():
            raise RuntimeError("a message was not acked")

    def _timed(self, act: object) -> Iterator[float]:
        assert callable(act)
        began = time.perf_counter()
        act()
        yield time.perf_counter() - began

    def close(self) -> None:
        """Closes all files."""
        self._spout.close()
        self._rounds.close()


def _ms() -> int:
    return int(1000 * time.monotonic())


def measured(messages: int, pause: float = 0) -> np.ndarray:
    """Returns microseconds: a row for each message, a column for each part.

    Args:
        messages: their number.
        pause: seconds before each.
    """
    with tempfile.TemporaryDirectory(prefix="message-way-") as folder:
        way = Way(Path(folder))
        for _ in range(_WARM_UP):
            list(way.message())
        found = np.empty((messages, len(PARTS)))
        for row in found:
            if pause:
                time.sleep(pause)
            row[:] = list(way.message())
        way.close()
    return 1e6 * found


def main() -> int:
    """Prints a line for each part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=3000, help="how many are measured")
    parser.add_argument("--pause", type=float, default=0.0, metavar="MS", help="milliseconds before each message (0)")
    parser.add_argument("--docs", action="store_true", help=f"draw docs/performance/{_PICTURE.name}")
    options = parser.parse_args()
    if options.messages < 1:
        parser.error(f"--messages must be 1 or more, not {options.messages}")
    if not 0 <= options.pause <= 1000:
        parser.error(f"--pause must be from 0 to 1000, not {options.pause:g}")
    found = measured(options.messages, options.pause / 1000)
    least, median, most = np.percentile(found, (25, 50, 75), axis=0)
    for name, *figures in zip(PARTS, median, least, most, strict=True):
        print("{:36} {:7.1f} µs ({:.1f} to {:.1f})".format(name, *figures))
    whole = np.percentile(found.sum(axis=1), (50, 25, 75))
    print("{:36} {:7.1f} µs ({:.1f} to {:.1f}); the least {:.1f}".format("all", *whole, found.sum(axis=1).min()))
    if options.docs:
        rows = [Bar(*row, "ours") for row in zip(PARTS, median, least, most, strict=True)]
        _PICTURE.write_text(bars("One message of word count in real time", "µs", rows), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
