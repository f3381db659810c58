"""One measurement: a contender, so many supervisors, heartbeats of one size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass

from lab.benchmarks.pacemaker.contenders import ROOT, Running
from lab.benchmarks.pacemaker.load import Orders

WORKERS = 4
"""Of each supervisor."""
MOST_CONNECTIONS = 19_000
"""This is what 20,000 open files leave; beyond it some connections carry the heartbeats of two workers."""
_LATE = 0.01
"""Part of the heartbeats that may be missed, or unanswered at the end, for a load to count as sustained."""


@dataclass
class Measured:
    """What came of it; times in seconds."""

    contender: str
    supervisors: int
    size: int
    due_per_sec: float
    """Heartbeats that were to be written each second."""
    written_per_sec: float
    megabit_per_sec: float
    """Towards the server, without the headers of TCP."""
    cpu: float
    """Of one core: 1.0 is all of it."""
    micros_per_write: float
    """CPU of the server for each heartbeat, reads of Nimbus included."""
    resident_mib: float
    values_mib: float
    p50: float | None
    p99: float | None
    read_secs: float | None
    """How long Nimbus took for all heartbeats, the median."""
    lag_p99: float | None
    """How late the generator was itself."""
    sustained: bool

    def to_dict(self) -> dict[str, object]:
        """Returns it in terms of JSON."""
        return asdict(self)


def measure(running: Running, supervisors: int, size: int, seconds: float, core: int, warm_up: float) -> Measured:
    """Loads a contender and returns what was measured.

    Args:
        running: the contender.
        supervisors: how many.
        size: bytes of a heartbeat.
        seconds: how long to measure.
        core: for the generator and for Nimbus.
        warm_up: seconds of load before that; a JVM compiles what it runs.
    """
    workers = WORKERS * supervisors
    orders = Orders(
        running.protocol, [list(a) for a in running.addresses], workers, MOST_CONNECTIONS, size, seconds, warm_up, core
    )
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT, "env": environment}
    with subprocess.Popen([sys.executable, "-m", "lab.benchmarks.pacemaker.load"], **piped) as load:  # type: ignore[call-overload]
        load.stdin.write(json.dumps(asdict(orders)) + "\n")
        load.stdin.flush()
        _line(load, "ready")
        servers = [f"{host}:{port}" for host, port in running.addresses]
        arguments = [running.name.lower(), str(core), str(workers), *servers]
        nimbus_command = [sys.executable, "-m", "lab.benchmarks.pacemaker.nimbus", *arguments]
        with subprocess.Popen(nimbus_command, **piped) as nimbus:  # type: ignore[call-overload]
            reads: list[dict[str, float]] = []
            reader = threading.Thread(target=lambda: reads.extend(map(json.loads, nimbus.stdout)), daemon=True)
            reader.start()
            load.stdin.write("go\n")
            load.stdin.flush()
            _line(load, "measuring")
            began, cpu = time.monotonic(), running.cpu()
            found = json.loads(load.stdout.readline())
            cpu, elapsed = running.cpu() - cpu, time.monotonic() - began
            resident = running.resident()
            nimbus.stdin.close()
            if nimbus.wait(60):
                raise SystemExit("the Nimbus that reads heartbeats has failed")
            reader.join()
        load.stdin.close()
        load.wait(60)
    secs = sorted(read["secs"] for read in reads)
    return Measured(
        contender=running.name,
        supervisors=supervisors,
        size=size,
        due_per_sec=found["due"] / seconds,
        written_per_sec=found["answered"] / seconds,
        megabit_per_sec=found["bytes"] * 8e-6 / seconds,
        cpu=cpu / elapsed,
        micros_per_write=1e6 * cpu / max(1, found["answered"]),
        resident_mib=resident / 2**20,
        values_mib=workers * size / 2**20,
        p50=found["p50"],
        p99=found["p99"],
        read_secs=secs[len(secs) // 2] if secs else None,
        lag_p99=found["lag_p99"],
        sustained=found["answered"] >= (1 - _LATE) * found["due"],
    )


def _line(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != expected:
        raise SystemExit(f"the generator says {line!r}, not {expected!r}")
