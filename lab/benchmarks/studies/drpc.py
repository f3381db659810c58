"""How long one DRPC request takes, beside Apache Storm: storm-starter's BasicDRPCTopology, one request at a time.

Usage: python -m lab.benchmarks.studies.drpc [--rounds N] [--count N] [--pause-ms N]

Each round measures Storm's LocalCluster with its LocalDRPC, and then ours, which is a real server with a token. Prints
the median and other percentiles of all rounds, in ms, and the ratio of the medians of each round.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.benchmarks.contenders import storm
from storm_on_spark import LocalCluster, LocalDRPC

_JOBS = Path(__file__).parents[3] / "jobs" / "storm_starter"
_WARM_UP = 300
_STORM_SECS = 300


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--count", type=int, default=400, help="requests of a round")
    parser.add_argument("--pause-ms", type=int, default=20, help="between two requests")
    options = parser.parse_args()
    storm.prepare(python=False)
    theirs, ours = [], []
    for number in range(options.rounds):
        theirs.append(_storm(options.count, options.pause_ms))
        ours.append(_ours(options.count, options.pause_ms))
        ratio = statistics.median(ours[-1]) / statistics.median(theirs[-1])
        print(
            f"round {number + 1}: Storm {_of(theirs[-1])}; ours {_of(ours[-1])}; medians {ratio:.2f} : 1",
            flush=True,
        )
    for name, rounds in (("Storm", theirs), ("ours", ours)):
        print(f"{name}: {_of([each for found in rounds for each in found])}")
    return 0


def _of(millis: list[float]) -> str:
    cuts = statistics.quantiles(millis, n=100)
    return ", ".join(f"p{percent} {cuts[percent - 1]:.2f} ms" for percent in (50, 90, 99))


def _storm(count: int, pause_ms: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        command = storm.java_command(Path(folder), "benchmarks.Drpc", str(_WARM_UP), str(count), str(pause_ms))
        done = subprocess.run(command, capture_output=True, text=True, timeout=_STORM_SECS, check=False)
    found = [int(line) / 1e6 for line in done.stdout.splitlines() if line.isdigit()]
    if len(found) != count:
        raise RuntimeError(f"Storm ended with status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return found


def _ours(count: int, pause_ms: int) -> list[float]:
    sys.path.insert(0, str(_JOBS))
    basic_drpc = importlib.import_module("basic_drpc")
    found: list[float] = []
    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("drpc", {}, basic_drpc.builder().create_local_topology(drpc))
        for number in range(-_WARM_UP, count):
            began = time.perf_counter()
            result = drpc.execute(basic_drpc.FUNCTION, f"hello{number}")
            took = time.perf_counter() - began
            if result != f"hello{number}!":
                raise RuntimeError(result)
            if number >= 0:
                found.append(took * 1000)
            time.sleep(pause_ms / 1000)
    return found


if __name__ == "__main__":
    sys.exit(main())
