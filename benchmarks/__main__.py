"""`make bench`: runs the word counts side by side and prints medians and ratios.

Absolute figures mean little on a shared machine; the ratios within one run are what to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
THROUGHPUT = (
    "per-tuple, acked",
    "columnar, acked",
    "per-tuple, no ackers",
    "columnar, no ackers",
    "native PySpark",
    "native PySpark, Python UDF",
)
LATENCY = ("per-tuple, acked", "columnar, acked")
LATENCY_RATE = 1000


def run(name: str, mode: str, seconds: float) -> dict[str, Any]:
    """Runs one contender in a process of its own and returns what it measured."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, str(HERE / "contenders.py"), name, mode, str(seconds)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name} ended with exit code {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender runs")
    parser.add_argument("--seconds", type=float, default=15, help="how long each is measured after warm-up")
    parser.add_argument("--quick", action="store_true", help="one round of a few seconds each")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 5
    progress = Console(stderr=True)
    rates: dict[str, list[float]] = {name: [] for name in THROUGHPUT}
    latencies: dict[str, list[dict[str, float]]] = {name: [] for name in LATENCY}
    started = time.monotonic()
    for number in range(options.rounds):
        for name in THROUGHPUT:
            progress.print(f"round {number + 1} of {options.rounds}: {name}, throughput")
            rates[name].append(run(name, "throughput", options.seconds)["sentences_per_second"])
        for name in LATENCY:
            progress.print(f"round {number + 1} of {options.rounds}: {name}, {LATENCY_RATE} sentences/s")
            latencies[name].append(run(name, str(LATENCY_RATE), options.seconds)["latency_ms"])
    results = summarise(rates, latencies)
    results["rounds"], results["seconds"] = options.rounds, time.monotonic() - started
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if options.json:
        print(json.dumps(results))
    else:
        show(results)


def summarise(rates: dict[str, list[float]], latencies: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Returns medians, spreads and the ratio of each contender to the per-tuple word count."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    reference = medians["per-tuple, acked"]
    return {
        "throughput": {
            name: {
                "sentences_per_second": round(medians[name]),
                "least": round(min(values)),
                "most": round(max(values)),
                "ratio": round(medians[name] / reference, 3),
            }
            for name, values in rates.items()
        },
        "complete_latency_ms": {
            name: {p: round(statistics.median(value[p] for value in values), 1) for p in ("p50", "p99")}
            for name, values in latencies.items()
        },
        "latency_rate": LATENCY_RATE,
        "cores": len(os.sched_getaffinity(0)),
    }


def show(results: dict[str, Any]) -> None:
    """Prints the results as tables."""
    console = Console()
    table = Table(title=f"Word count, 7-word sentences, {results['cores']} cores, {results['rounds']} round(s)")
    for column in ("", "sentences/s", "least", "most", "ratio", "p50 ms", "p99 ms"):
        table.add_column(column, justify="left" if not column else "right")
    for name, row in results["throughput"].items():
        latency = results["complete_latency_ms"].get(name, {})
        table.add_row(
            name,
            *(f"{row[key]:,}" for key in ("sentences_per_second", "least", "most")),
            f"{row['ratio']:.2f}",
            *(f"{latency[p]:,.0f}" if p in latency else "" for p in ("p50", "p99")),
        )
    console.print(table)
    console.print(f"Latencies: complete latency at {results['latency_rate']:,} sentences/s, from emit to ack().")


if __name__ == "__main__":
    main()
