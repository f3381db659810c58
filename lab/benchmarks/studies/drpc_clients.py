"""Many DRPC clients at once: how many requests a second are answered, and whether each answer is right.

Usage: python -m lab.benchmarks.studies.drpc_clients [--clients N] [--requests N] [--profile NAME] [--kills]

A bolt counts how often it gets each number, and answers with the number and that count: an answer is right if the
count is 1. With `--kills` the process that executes the bolt dies at some numbers, as a request is worked on, and the
process of the spout is killed once. A request may then end without an answer, by a declared error; none may be
answered wrongly, counted twice, or be without an end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from storm_on_spark import BaseBasicBolt, Fields, LocalCluster, LocalDRPC, Topology
from storm_on_spark.drpc import DRPCClient, DRPCExecutionException, LinearDRPCTopologyBuilder
from storm_on_spark.drpc.connection import Address
from storm_on_spark.testing import crash, crashes

FUNCTION = "count"
TOTAL = "total"
"""The argument that is answered by how many numbers were counted, and how often all of them together."""
_REQUEST_SECS = 60
_WARM_UP = 200
_HALF = "half"
_ROOT = Path(__file__).parents[3]


class Counting(BaseBasicBolt):
    """Counts how often it gets each number.

    Args:
        folder: for the traces of its deaths.
        dies_at: the numbers at which its process dies, once each.
    """

    def __init__(self, folder: str, dies_at: frozenset[str]) -> None:
        self._folder, self._dies_at = folder, dies_at

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.times: dict[str, int] = {}

    def execute(self, tup: Any, collector: Any) -> None:
        request, number = tup
        if number == TOTAL:
            collector.emit([request, f"{len(self.times)} {sum(self.times.values())}"])
            return
        self.times[number] = self.times.get(number, 0) + 1
        if number in self._dies_at:
            crash(Path(self._folder) / f"crash-{number}")
        collector.emit([request, f"{number} {self.times[number]}"])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "result"))


def build(drpc: LocalDRPC, folder: Path, dies_at: Iterable[int] = ()) -> Topology:
    """Returns the topology."""
    builder = LinearDRPCTopologyBuilder(FUNCTION)
    builder.add_bolt(Counting(str(folder), frozenset(map(str, dies_at))))
    return builder.create_local_topology(drpc)


@dataclass
class Answers:
    """What came of all requests."""

    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    millis: list[float] = field(default_factory=list)
    secs: float = 0.0


def ask(address: Address, clients: int, numbers: range, half: Callable[[], None]) -> Answers:
    """Asks for each number once, by so many clients at once, each with a connection of its own.

    Args:
        address: of the server.
        clients: how many.
        numbers: what they ask.
        half: called once, when half of the numbers are asked for.
    """
    given, lock, found = iter(numbers), threading.Lock(), Answers()
    conf = {"drpc.servers": [address.host], "nimbus.auth.token.file": address.token_file}

    def run() -> None:
        with DRPCClient(conf, port=address.port, timeout_secs=2 * _REQUEST_SECS) as client:
            while True:
                with lock:
                    number = next(given, None)
                if number is None:
                    return
                if number == numbers[len(numbers) // 2]:
                    half()
                began, error, answer = time.perf_counter(), None, ""
                try:
                    answer = client.execute(FUNCTION, str(number))
                except DRPCExecutionException as caught:
                    error = caught.type.name
                took = time.perf_counter() - began
                with lock:
                    found.millis.append(1000 * took)
                    if error is not None:
                        found.errors[error] += 1
                    elif answer == f"{number} 1":
                        found.answered += 1
                    else:
                        found.wrong.append(answer)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.secs = time.perf_counter() - began
    return found


def asked_elsewhere(address: Address, clients: int, numbers: range, half: Callable[[], object]) -> Answers:
    """Does what `ask` does in a process of its own: in this one clients and server would take turns."""
    words = [address.host, address.port, address.token_file, clients, numbers.start, numbers.stop]
    command = [sys.executable, "-m", "lab.benchmarks.studies.drpc_clients", "--ask", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as asking:
        assert asking.stdout is not None
        if asking.stdout.readline().strip() == _HALF:
            half()
        found = json.loads(asking.stdout.read())
    return Answers(**{**found, "errors": Counter(found["errors"])})


def _ask(words: list[str]) -> int:
    host, port, token_file, clients, start, stop = words
    address, numbers = Address(host, int(port), token_file), range(int(start), int(stop))
    found = ask(address, int(clients), numbers, lambda: print(_HALF, flush=True))
    print(json.dumps(vars(found)))
    return 0


def kill_spouts() -> int:
    """Kills the processes of this one that run spouts; returns how many."""
    hosts = [child for child in psutil.Process().children(recursive=True) if "spout_host" in " ".join(_words(child))]
    for host in hosts:
        host.kill()
    return len(hosts)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def main() -> int:
    """Measures and prints; returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--profile", default="realtime", help="topology.profile")
    parser.add_argument("--kills", action="store_true", help="let processes die meanwhile")
    parser.add_argument("--ask", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return _ask(options.ask) if options.ask else _measure(options)


def _measure(options: argparse.Namespace) -> int:
    dies_at = [options.requests // 6, options.requests * 5 // 6] if options.kills else []
    conf = {"drpc.request.timeout.secs": _REQUEST_SECS}
    with tempfile.TemporaryDirectory() as name, LocalDRPC(conf) as drpc, LocalCluster() as cluster:
        folder, killed = Path(name), list[int]()
        cluster.submit_topology(FUNCTION, {"topology.profile": options.profile}, build(drpc, folder, dies_at))
        asked_elsewhere(drpc.calls, options.clients, range(-_WARM_UP, 0), lambda: None)
        faults = (lambda: killed.append(kill_spouts())) if options.kills else (lambda: None)
        found = asked_elsewhere(drpc.calls, options.clients, range(options.requests), faults)
        counted, times = map(int, drpc.execute(FUNCTION, TOTAL).split())
        died = [crashes(folder / f"crash-{number}") for number in dies_at]
    cuts = statistics.quantiles(found.millis, n=100)
    print(
        f"{options.profile}: {found.answered:,} of {options.requests:,} requests of {options.clients} clients answered "
        f"in {found.secs:.1f} s, {options.requests / found.secs:,.0f} a second; p50 {cuts[49]:.1f} ms, p99 "
        f"{cuts[98]:.1f} ms; errors {dict(found.errors)}, wrong {found.wrong[:5]}; {counted:,} numbers counted, "
        f"{times - counted} of them again; bolts died {sum(died)} times, spouts {sum(killed)}"
    )
    answered = found.answered + _WARM_UP
    right = not found.wrong and counted == times and answered <= counted <= options.requests + _WARM_UP
    happened = not options.kills or (died == [1, 1] and killed == [1])
    return 0 if right and happened and (options.kills or found.answered == options.requests) else 1


if __name__ == "__main__":
    sys.exit(main())
