"""One measurement: a contender, a number of supervisors, heartbeats of one size."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import IO, Any

from lab.benchmarks.pacemaker.contenders import ROOT, Running
from lab.benchmarks.pacemaker.load import PERIOD, Orders

WORKERS = 4
"""Of each supervisor."""
MOST_CONNECTIONS = 19_000
"""Most connections with 20,000 open files; with more workers, some connections carry the heartbeats of two."""
_BUSY, _LAG = 0.95, 0.5
_CONNECT_SECS = 120.0
"""Longest time until all workers are connected; ZooKeeper writes each session to its disks."""
_REST_SECS = 60.0
"""Longest time of everything else in a measurement."""
_LATE = 0.01
"""Part of the heartbeats that may be missed, or unanswered at the end, for a load to count as sustained."""


@dataclass
class Measured:
    """The result; times in seconds."""

    contender: str
    supervisors: int
    size: int
    due_per_sec: float
    """Heartbeats that were to be written each second."""
    written_per_sec: float
    megabit_per_sec: float
    """Towards the server, without the headers of TCP."""
    cpu: float
    """The share of one core; 1.0 is all of it."""
    micros_per_write: float
    """CPU of the server for each heartbeat, reads of Nimbus included."""
    resident_mib: float
    values_mib: float
    p50: float | None
    p99: float | None
    read_secs: float | None
    """How long Nimbus took for all heartbeats, the median."""
    lag_p99: float | None
    """How late the generator itself was."""
    sustained: bool
    generator_cpu: float = 0.0
    """The share of its core; near 1.0 the generator itself is the limit."""
    back_secs: float | None = None
    """Of the last survivor: how long it took until the workers of those that died wrote to it."""
    why: str = ""
    """Why it was not sustained."""

    @property
    def of_generator(self) -> bool:
        """Whether a load was too much for the generator, so that it says nothing about the server."""
        return not self.sustained and (self.generator_cpu > _BUSY or (self.lag_p99 or 0.0) > _LAG)

    def to_dict(self) -> dict[str, object]:
        """Returns it in terms of JSON."""
        return asdict(self)


def measure(running: Running, supervisors: int, size: int, seconds: float, core: int, warm_up: float) -> Measured:
    """Loads a contender and returns the measurements. It takes a bounded time, whatever the contender does.

    Args:
        running: the contender.
        supervisors: how many.
        size: bytes of a heartbeat.
        seconds: how long to measure.
        core: for the generator and for Nimbus.
        warm_up: seconds of load before that; a JVM compiles what it runs.
    """
    workers = WORKERS * supervisors
    addresses = [list(address) for address in running.addresses]
    kill_after = warm_up / 2 if running.victims else None
    orders = Orders(
        running.protocol, addresses, workers, MOST_CONNECTIONS, size, seconds, warm_up, core, kill_after=kill_after
    )
    reads: list[dict[str, float]] = []
    cpu = resident = 0.0
    with contextlib.ExitStack() as stack:
        limit = _CONNECT_SECS + warm_up + seconds + _REST_SECS
        load = stack.enter_context(_program("load", limit=limit))
        _say(load, json.dumps(asdict(orders)))
        found = _heard(load)
        if found == "ready":
            servers = [f"{host}:{port}" for host, port in running.addresses]
            arguments = [running.way, str(core), str(workers), *servers]
            nimbus = stack.enter_context(_program("nimbus", *arguments, limit=limit))
            reader = threading.Thread(target=lambda: reads.extend(map(json.loads, _out(nimbus))), daemon=True)
            reader.start()
            _say(load, "go")
            while (found := _heard(load)) in ("kill", "measuring"):
                if found == "kill":
                    running.kill()
                else:
                    began, cpu = time.monotonic(), running.cpu()
            cpu, resident = (running.cpu() - cpu) / (time.monotonic() - began), running.resident()
            _end(nimbus)
            reader.join()
    broken = not isinstance(found, dict) or "broken" in found
    if broken:
        why = found["broken"] if isinstance(found, dict) else "it didn't bear the load within the time"
        found = {"due": workers / PERIOD * seconds, "answered": 0, "bytes": 0, "cpu": 0.0, "lost": 0}
    else:
        answered = found["answered"] / max(1, found["due"])
        why = "" if answered >= 1 - _LATE else f"{answered:.0%} of the heartbeats answered"
        lost = found["lost"] if not running.victims else 0
        why += f", {lost:,} connections lost" if why and lost else ""
    secs = sorted(read["secs"] for read in reads)
    return Measured(
        contender=running.name,
        supervisors=supervisors,
        size=size,
        due_per_sec=found["due"] / seconds,
        written_per_sec=found["answered"] / seconds,
        megabit_per_sec=found["bytes"] * 8e-6 / seconds,
        cpu=cpu,
        micros_per_write=1e6 * cpu * seconds / max(1, found["answered"]),
        resident_mib=resident / 2**20,
        values_mib=workers * size / 2**20,
        p50=found.get("p50"),
        p99=found.get("p99"),
        read_secs=secs[len(secs) // 2] if secs else None,
        lag_p99=found.get("lag_p99"),
        sustained=not why,
        generator_cpu=found["cpu"],
        back_secs=found.get("back"),
        why=why,
    )


@contextlib.contextmanager
def _program(name: str, *arguments: str, limit: float) -> Iterator[subprocess.Popen[str]]:
    """Runs a program of this package; it is killed after `limit` seconds, and when the caller is done with it."""
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    command = [sys.executable, "-m", f"lab.benchmarks.pacemaker.{name}", *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    )
    watch = threading.Timer(limit, process.kill)
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def _out(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line + "\n")
        process.stdin.flush()


def _heard(process: subprocess.Popen[str]) -> Any:
    """Returns the next that it says: a word, or what a line of JSON says; None when it has ended."""
    line = _out(process).readline().strip()
    return json.loads(line) if line.startswith("{") else line or None


def _end(process: subprocess.Popen[str]) -> None:
    """Asks it to end, and kills it if it doesn't end in time."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdin = None
    try:
        process.wait(_REST_SECS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
