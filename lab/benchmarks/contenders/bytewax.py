"""bytewax: the word count as its own dataflow, in one process or two, with its recovery or without.

It comes from PyPI into its own environment in build/bytewax. Nothing is acked there: a sentence is done when its
last word is counted.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.benchmarks.cases import Case, Phase
from lab.benchmarks.contenders import Figures, Setup, environments, figures
from lab.benchmarks.measures import ProcessTree, grown, sizes
from lab.benchmarks.workloads.feed import Control
from storm_on_spark.runtime.processes.server import HOST, free_ports

_ROOT = Path(__file__).parents[3]
_FLOW = _ROOT / "lab" / "benchmarks" / "bytewax"
_BUILD = _ROOT / "build" / "bytewax"
WANTED = "bytewax==0.21.1"
_START_SECS = 60.0
_PER_DOUBLING = 32
"""Buckets of latencies; see flow.py."""
_SNAPSHOT_SECS = 1
"""As often as `realtime` saves state."""


def prepare() -> None:
    """Makes the environment unless it exists.

    Raises:
        NotThereError: there is no bytewax for this Python, or no network.
    """
    environments.make(_BUILD, WANTED)


def run(case: Case, setup: Setup) -> Figures:
    """Runs the dataflow in separate processes and measures it."""
    recovery = setup.folder / "recovery" if case.options.get("recovery") else None
    results, processes = setup.folder / "results", case.options.get("processes", 1)
    results.mkdir()
    control = Control(setup.folder / "control.json")
    control.set(case.phases[0].rate)
    if recovery is not None:
        recovery.mkdir()
        subprocess.run([environments.python(_BUILD), "-m", "bytewax.recovery", recovery, str(processes)], check=True)
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "BENCH_CONTROL": str(control.path),
        "BENCH_SOURCE": str(setup.source),
        "BENCH_RESULTS": str(results),
    }
    environment.pop("PYTHONPATH", None)
    result: Figures = {"phases": {}}
    with _running(processes, recovery, environment):
        tree = ProcessTree()
        _wait_for(lambda: _done(results)[0] > 0, "counted anything")
        result["first_ack_secs"] = time.monotonic() - setup.started
        for number, phase in enumerate(case.phases):
            control.set(phase.rate)
            tree.wait(setup.settle if number else setup.warm_up)
            result["phases"][phase.name] = _measure(phase, tree, setup, results, recovery)
        result["memory_mb"] = {"python": tree.peak_memory_mb()["python"]}
    if recovery is not None:
        # All were killed: it must continue from its saved state.
        with _running(processes, recovery, environment):
            _wait_for((results / "resumed").exists, "went on from what it had saved")
    return result


def _measure(phase: Phase, tree: ProcessTree, setup: Setup, results: Path, recovery: Path | None) -> Figures:
    files = sizes(recovery) if recovery is not None else {}
    cpu, started, (first, before) = tree.cpu_seconds(), time.monotonic(), _done(results)
    tree.wait(setup.seconds)
    last, after = _done(results)
    seconds, used = time.monotonic() - started, tree.cpu_seconds() - cpu
    latencies = {place: count - before.get(place, 0) for place, count in after.items()}
    more = {} if recovery is None else {"checkpoint_bytes_per_million": _written(files, sizes(recovery), last - first)}
    return figures(last - first, seconds, used, None if phase.rate is None else percentiles(latencies), **more)


def _written(before: dict[str, int], after: dict[str, int], roots: int) -> float | None:
    return 1e6 * grown(before, after) / roots if roots else None


def _done(results: Path) -> tuple[int, dict[int, int]]:
    """Returns the number of sentences that all processes have done, and their latencies by bucket."""
    total, latencies = 0, dict[int, int]()
    for file in results.glob("*.jsonl"):
        lines = file.read_bytes().split(b"\n")[:-1]
        if lines:
            _, done, counts = json.loads(lines[-1])
            total += done
            for place, count in counts.items():
                latencies[int(place)] = latencies.get(int(place), 0) + count
    return total, latencies


def percentiles(latencies: dict[int, int]) -> dict[str, float] | None:
    """Returns p50, p95 and p99 in ms of a histogram with the buckets of flow.py; None of nothing.

    Example:
        >>> percentiles({0: 90, 32: 10})
        {'p50': 1.0, 'p95': 2.0, 'p99': 2.0}
    """
    total = sum(latencies.values())
    if not total:
        return None
    found = {}
    for percent in (50, 95, 99):
        left = math.ceil(total * percent / 100)
        for place in sorted(latencies):
            left -= latencies[place]
            if left <= 0:
                found[f"p{percent}"] = round(2 ** (place / _PER_DOUBLING), 3)
                break
    return found


@contextlib.contextmanager
def _running(processes: int, recovery: Path | None, environment: dict[str, str]) -> Iterator[None]:
    """Starts all processes; at the end they are killed."""
    command = [str(environments.python(_BUILD)), "-m", "bytewax.run", "flow:flow"]
    if recovery is not None:
        command += ["-r", str(recovery), "-s", str(_SNAPSHOT_SECS), "-b", "0"]
    addresses = ";".join(f"{HOST}:{port}" for port in free_ports(processes))
    alone = processes == 1
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(processes):
            words = command if alone else [*command, "-i", str(number), "-a", addresses]
            started.append(
                subprocess.Popen(
                    words, cwd=_FLOW, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno()
                )
            )
        yield
        ended = [process.returncode for process in started if process.poll() is not None]
        if ended:
            raise RuntimeError(f"bytewax ended with status {ended[0]} before it was measured")
    finally:
        for process in started:
            process.kill()
            process.wait()


def _wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + _START_SECS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"bytewax has not {what} within {_START_SECS:.0f} s")
        time.sleep(0.05)
