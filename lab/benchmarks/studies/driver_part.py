"""What the driver does per micro-batch, by hosts, partitions and messages.

Usage: python -m lab.benchmarks.studies.driver_part [--docs]

The coordinator is real, spout hosts are simulated. A process holds one authenticated connection per host, as executors
would, and answers for the spout tasks: each says that it has cut its share of the messages. The driver's side is what
runs in a topology: it asks the hosts, plans the offset, writes the outcomes that the ackers' chunks hold, and tells the
spouts. Figures are its CPU time, which other work on the machine changes less than time that passes, and the bytes on
the connections. Spark's own part is not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any

import numpy as np

from lab.suite.pages import put_between
from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Config, Fields, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.runtime.batches.clock import SystemClock
from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.codec.chunk import encode_outcome
from storm_on_spark.runtime.reports.latency import LatencyHistogram
from storm_on_spark.runtime.run.spec import RunSpec, make_spec
from storm_on_spark.runtime.spouts.log import Mark, WriterEpoch
from storm_on_spark.runtime.spouts.messages import Progress, Ready, Settle, Setup, Stop, Want
from storm_on_spark.runtime.spouts.remote.host import RemoteHost
from storm_on_spark.runtime.spouts.remote.line import Line, call_driver
from storm_on_spark.runtime.spouts.remote.listener import Hello, HostListener
from storm_on_spark.runtime.spouts.spout_task import SpoutStats
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.ids import root_base

SIZES = ((1, 1), (4, 2), (16, 4), (64, 16), (256, 64))
"""Partitions, each with a spout task and an acker task, and executors, each with a spout host."""
TUPLES = (0, 10_000, 1_000_000)
"""Messages of a micro-batch. Without any, every task has cut a tuple that is not tracked."""
_WARM_UP, _BATCHES = 2, 8
_BEGIN, _END = "<!-- driver part: begin -->", "<!-- driver part: end -->"
_PAGE = Path(__file__).parents[3] / "docs" / "performance.md"


class _Spout(BaseRichSpout):
    def open(self, conf: Any, context: Any, collector: Any) -> None: ...

    def next_tuple(self) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class _Bolt(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...


@dataclass
class Figures:
    """Of one size."""

    partitions: int
    hosts: int
    tuples: int
    cpu_ms: float
    """CPU time of the driver's Python per micro-batch."""
    sent: float
    """Bytes to all hosts per micro-batch."""
    received: float
    """Bytes from all hosts per micro-batch."""
    offset: int
    """Bytes of the offset that Spark writes down."""
    outcomes: int
    """Bytes of outcomes that Spark brings to the driver."""


class _Nothing:
    """Keeps no process: the simulated hosts call by themselves."""

    def ensure(self) -> str:
        return ""

    def end(self) -> None: ...


def measure(partitions: int, hosts: int, tuples: int, batches: int = _BATCHES) -> Figures:
    """Returns what the driver does per micro-batch."""
    spec = _spec(partitions, hosts)
    made: list[RemoteHost] = []
    listener = HostListener("127.0.0.1", lambda line, hello: made[hello.number].answer(line, hello))

    def make_host(*args: Any) -> RemoteHost:
        made.append(RemoteHost(_Nothing(), *args))
        return made[-1]

    with tempfile.TemporaryDirectory(prefix="driver-part-") as folder:
        coordinator = Coordinator(
            spec, Path(folder), SystemClock(), True, lambda failure: sys.exit(failure.message), make_host=make_host
        )
        told = json.dumps({"port": listener.port, "secret": listener.secret.hex(), "hosts": hosts, "tuples": tuples})
        peers = subprocess.Popen(
            [sys.executable, "-m", "lab.benchmarks.studies.driver_part", "--peers"], stdin=subprocess.PIPE
        )
        assert peers.stdin is not None
        with peers.stdin:
            peers.stdin.write(told.encode())
        try:
            coordinator.start(Offset())
            return _run(coordinator, made, spec, tuples, batches)
        finally:
            coordinator.stop()
            listener.close()
            peers.kill()
            peers.wait()


def _run(coordinator: Coordinator, hosts: Sequence[RemoteHost], spec: RunSpec, tuples: int, batches: int) -> Figures:
    tasks, ackers = spec.plan.components["spout"].tasks, spec.plan.acker_tasks
    each = tuples // len(tasks)
    offset, cpu, outcomes_size = Offset(), [], 0
    before = _traffic(hosts)
    for batch in range(_WARM_UP + batches):
        # What Spark brings from the ackers: their work, not the driver's.
        roots = np.concatenate(
            [root_base(task) + 1 + batch * each + np.arange(each, dtype=np.uint64) for task in tasks]
        )
        parts = [roots[roots % np.uint64(len(ackers)) == number] for number in range(len(ackers))] if each else []
        codes = [np.full(len(part), acker.ACKED, np.uint8) for part in parts]
        chunks = [encode_outcome(*both, source=task) for task, *both in zip(ackers, parts, codes)]  # noqa: B905
        outcomes_size = sum(map(len, chunks))
        if batch == _WARM_UP:
            before = _traffic(hosts)
        started = time.process_time()
        while (end := coordinator.poll(offset)) == offset:
            continue
        json.dumps(end.to_json())
        coordinator.deliver(batch, chunks, [])
        cpu.append(time.process_time() - started)
        offset = end
    after = _traffic(hosts)
    return Figures(
        len(tasks),
        len(hosts),
        tuples,
        1000 * statistics.median(cpu[_WARM_UP:]),
        (after[0] - before[0]) / batches,
        (after[1] - before[1]) / batches,
        len(json.dumps(offset.to_json())),
        outcomes_size,
    )


def _traffic(hosts: Sequence[RemoteHost]) -> tuple[int, int]:
    sent, received = zip(*(host.traffic for host in hosts), strict=True)
    return sum(sent), sum(received)


def _spec(partitions: int, hosts: int) -> RunSpec:
    builder = TopologyBuilder()
    builder.set_spout("spout", _Spout(), partitions)
    builder.set_bolt("bolt", _Bolt(), partitions).shuffle_grouping("spout")
    conf = {
        Config.TOPOLOGY_WORKERS: hosts,
        Config.TOPOLOGY_ACKER_EXECUTORS: partitions,
        Config.TOPOLOGY_BATCH_MAX_TUPLES: max(TUPLES) * 2,
    }
    plan = place(compile_graph(builder.create_topology(), effective_conf(conf)), partitions)
    return make_spec(plan, "driver-part", "driver-part", "driver-part", ())


# --- the simulated hosts ---------------------------------------------------------------


class _Peer:
    """A host that does nothing but talk."""

    def __init__(self, line: Line, tuples: Callable[[int], int]) -> None:
        self.line, self._tuples = line, tuples
        setup = pickle.loads(line.recv_bytes())
        assert isinstance(setup, Setup)
        self._tasks = [task for executor in setup.tasks for task in executor]
        self._ends = dict.fromkeys(self._tasks, 0)
        self._saved = dict.fromkeys(self._tasks, -1)
        self._epoch: WriterEpoch = setup.epoch
        for task in self._tasks:
            self._send(Ready(task, Mark(0, setup.epoch)))

    def handle(self) -> bool:
        """Answers a message; returns whether there will be more."""
        message = pickle.loads(self.line.recv_bytes())
        if isinstance(message, Settle):
            self._saved[message.task] = message.batch
        elif isinstance(message, Want):
            for task in self._tasks:
                self._ends[task] += 1000
                mark = Mark(self._ends[task], self._epoch)
                stats = SpoutStats(emitted=self._ends[task])
                tuples = self._tuples(task)
                self._send(Progress(task, mark, True, tuples, self._saved[task], stats, LatencyHistogram(), ()))
        return not isinstance(message, Stop)

    def _send(self, message: object) -> None:
        self.line.send_bytes(pickle.dumps(message, 5))


def _peers() -> None:
    told = json.loads(sys.stdin.read())
    peers = []
    for number in range(told["hosts"]):
        line = call_driver(socket.create_connection(("127.0.0.1", told["port"])), bytes.fromhex(told["secret"]))
        line.send_bytes(Hello(number, 1, os.getpid(), f"executor-{number}", "").to_bytes())
        peers.append(line)
    with DefaultSelector() as selector:
        for line in peers:
            selector.register(line, EVENT_READ, _Peer(line, lambda task: 1 + told["tuples"] // told["hosts"]))
        while selector.get_map():
            for key, _ in selector.select():
                if not key.data.handle():
                    selector.unregister(key.fileobj)
                    key.data.line.close()


# --- the table ---------------------------------------------------------------


def table(figures: Sequence[Figures]) -> str:
    """Returns the figures as a table in Markdown."""
    lines = [
        "| partitions | hosts | messages | CPU ms | kB to hosts | kB from hosts | kB offset | kB outcomes |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in figures:
        sizes = (one.sent, one.received, one.offset, one.outcomes)
        lines.append(
            f"| {one.partitions} | {one.hosts} | {one.tuples:,} | {one.cpu_ms:.1f} | "
            + " | ".join(f"{size / 1000:,.1f}" for size in sizes)
            + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures all sizes and prints the table."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.studies.driver_part", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peers:
        _peers()
        return
    figures = [measure(partitions, hosts, tuples) for partitions, hosts in SIZES for tuples in TUPLES]
    sys.stdout.write(table(figures))
    if options.docs:
        intro = "<!-- Written by `python -m lab.benchmarks.studies.driver_part --docs`. Don't edit. -->\n\n"
        put_between(_PAGE, _BEGIN, _END, f"{intro}{table(figures)}")


if __name__ == "__main__":
    main()
