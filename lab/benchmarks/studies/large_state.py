"""State larger than memory, through Spark: ten million keys of one task beside the same state as a whole in memory.

Usage: python -m lab.benchmarks.studies.large_state [--rounds N] [--docs] [--from FILE]

The cases and targets are those of `make bench`; this runs them alone. Two processes of a round are compared: both have
the same load, one after the other, so other work on the machine meets them differently. Hence processor time beside
throughput, and ratios of both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks import report
from lab.benchmarks.cases import CASES, MILLION, UNIFORM, ZIPF, Phase, large_case
from lab.benchmarks.harness import Outcome, Pace, play
from lab.benchmarks.targets import judge, shown
from lab.suite import command
from lab.suite.pages import put_between
from lab.suite.tables import cores

BEGIN, END = "<!-- large state: begin -->", "<!-- large state: end -->"
_PAGE = Path(__file__).parents[3] / "docs" / "performance.md"
_KEYS = 10 * MILLION
_SECONDS = 20.0
"""How long a phase is measured. The journal of what is all in memory is rewritten about once in that time, for two or
three seconds; a shorter phase may miss it."""
_NAMES = {False: "memory of the default", True: "all in memory"}


def main() -> int:
    """Measures, prints the tables, returns the exit code."""
    options = _options()
    pace, seconds = Pace(rounds=options.rounds, seconds=_SECONDS), 0.0
    if options.again:
        outcomes, pace, seconds = report.from_json(options.again.read_text("utf-8"))
    else:
        command.exit_on_sigterm()
        cases = [CASES[large_case(_KEYS, in_memory)] for in_memory in _NAMES]
        outcomes = play(cases, pace, lambda line: print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr))
        if options.save:
            options.save.write_text(report.as_json(outcomes, [], pace, seconds) + "\n", "utf-8")
    problems = [problem for outcome in outcomes.values() for problem in outcome.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    text = markdown(outcomes, pace)
    sys.stdout.write(text)
    if options.docs:
        intro = "<!-- Written by `python -m lab.benchmarks.studies.large_state --docs`. Don't edit. -->\n\n"
        put_between(_PAGE, BEGIN, END, intro + text)
    return 0


def markdown(outcomes: Mapping[str, Outcome], pace: Pace) -> str:
    """Returns the tables: what was measured, and what came of the targets."""
    runs = {
        in_memory: [run for run in outcomes[large_case(_KEYS, in_memory)].runs if run is not None]
        for in_memory in _NAMES
    }
    lines = [
        f"{_KEYS:,} integer keys of one task; {cores()} cores, {pace.rounds} round(s), {pace.seconds:g} s a phase. "
        "*At a start* is what a worker reads of the state before it executes the first tuple.",
        "",
        "| | Zipf, a second | CPU µs each | uniform, a second | CPU µs each | worker MB | at a start MB | of MB |",
        "|---|" + "--:|" * 7,
        *(_row(name, runs[in_memory]) for in_memory, name in _NAMES.items()),
        "",
        "A throughput is beside that with all in memory. *By processor time* it is what it would be if both had "
        "nothing to wait for; a target is met if both figures meet it.",
        "",
        "| what | target | measured | by processor time | result |",
        "|---|--:|--:|--:|---|",
    ]
    # In the order of the targets of throughput.
    by_cpu = [_share(runs, phase) for phase in (ZIPF, UNIFORM)]
    for verdict in judge(outcomes, pace.rounds, None):
        if not verdict.values:
            continue
        target, others = verdict.target, [by_cpu.pop(0)] if "throughput" in verdict.target.what else []
        figures = [verdict.median, *others]
        met = min(figures) >= target.limit if target.at_least else max(figures) <= target.limit
        cells = [target.what, target.wanted, *(shown(figure, target.unit) for figure in figures)]
        cells += [*[""] * (1 - len(others)), "met" if met else "not met"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _row(name: str, runs: Sequence[Mapping[str, Any]]) -> str:
    def middle(*path: str) -> float:
        values: list[Any] = list(runs)
        for key in path:
            values = [value[key] for value in values]
        return float(statistics.median(values))

    cells = []
    for phase in (ZIPF, UNIFORM):
        cells.append(f"{middle('phases', phase.name, 'roots_per_second'):,.0f}")
        cells.append(f"{middle('phases', phase.name, 'cpu_secs_per_million'):.1f}")
    cells.append(f"{middle('worker_mb'):,.0f}")
    cells += [f"{middle('start_reads', part) / 1e6:.1f}" for part in ("bytes", "of")]
    return f"| {name} | " + " | ".join(cells) + " |"


def _share(runs: Mapping[bool, Sequence[Mapping[str, Any]]], phase: Phase) -> float:
    """Returns the processor time of a tuple where all is in memory, of that where it is not."""
    paged, whole = (
        statistics.median(run["phases"][phase.name]["cpu_secs_per_million"] for run in runs[in_memory])
        for in_memory in _NAMES
    )
    return float(whole / paged)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.studies.large_state", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--save", type=Path, metavar="FILE", help="where the results are written")
    parser.add_argument(
        "--from", dest="again", type=Path, metavar="FILE", help="results of an earlier run; runs nothing"
    )
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
