"""`make bench`: measures this project beside Apache Storm and native PySpark, and prints which targets are met.

Exit codes: 0 all cases that can run here ran, 1 one failed, 2 wrong arguments. A target that is not met is not an
error.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from lab.benchmarks import report
from lab.benchmarks.cases import CASES, REALTIME_BESIDE, Case
from lab.benchmarks.harness import QUICK, Outcome, Pace, play
from lab.benchmarks.report import Run
from lab.benchmarks.studies import soak
from lab.benchmarks.targets import judge, judge_connectors, judge_realtime
from lab.suite import command

_HERE = Path(__file__).parent
_RESULTS = _HERE / "results.json"
_REALTIME_RESULTS = _HERE / "realtime.json"
_CONNECTORS_RESULTS = _HERE / "connectors.json"
_PAGES = _HERE.parents[1] / "docs" / "performance"


def main() -> int:
    """Runs the requested cases; returns the exit code."""
    options = _options()
    if options.list:
        sys.stdout.writelines(f"{_marks(case)} {case.name}\n" for case in CASES.values())
        return 0
    progress = Console(stderr=True, highlight=False)
    outcomes: dict[str, Outcome] = {}
    pace, seconds = _pace(options), 0.0
    if options.again:
        outcomes, pace, seconds = report.from_json(options.again.read_text("utf-8"))
    chosen = _chosen(options)
    if chosen:
        progress.print(f"{len(chosen)} cases, {pace.rounds} round(s), {pace.seconds:g} s a phase")
        command.exit_on_sigterm()
        started = time.monotonic()
        tell = lambda line: progress.print(f"{time.strftime('%H:%M:%S')} {line}", markup=False)  # noqa: E731

        def keep(measured: Mapping[str, Outcome]) -> None:
            # Saved now, so that a later error doesn't lose half an hour of measurements.
            options.save.write_text(report.as_json({**outcomes, **measured}, [], pace, seconds) + "\n", "utf-8")

        outcomes |= play(chosen, pace, tell, keep)
        outcomes = {name: outcomes[name] for name in CASES if name in outcomes}
        seconds += time.monotonic() - started
    which: Run = "connectors" if options.connectors else "realtime" if options.realtime else "main"
    if options.connectors:
        verdicts = judge_connectors(outcomes, pace.rounds)
    elif options.realtime:
        verdicts = judge_realtime(outcomes, pace.rounds)
    else:
        verdicts = judge(outcomes, pace.rounds, soak.last())
    document = report.as_json(outcomes, verdicts, pace, seconds)
    options.save.write_text(document + "\n", "utf-8")
    command.hand_out(options, document, lambda console: report.show(outcomes, verdicts, pace, console))
    if options.docs:
        report.write_docs(outcomes, verdicts, pace, _PAGES, which)
    return 1 if any(outcome.problems for outcome in outcomes.values()) else 0


def _pace(options: argparse.Namespace) -> Pace:
    once = options.only or options.realtime or options.connectors
    pace = QUICK if options.quick else Pace(rounds=1 if once else 3)
    given = {name: value for name in ("rounds", "seconds", "warm_up") if (value := getattr(options, name)) is not None}
    return dataclasses.replace(pace, **given)


def _chosen(options: argparse.Namespace) -> list[Case]:
    if options.only:
        return [case for case in CASES.values() if any(part in case.name for part in options.only)]
    if options.again and (options.realtime or options.connectors):
        return []
    if options.realtime:
        return [case for case in CASES.values() if case.group == "realtime" or case.name in REALTIME_BESIDE]
    if options.connectors:
        return [case for case in CASES.values() if case.group == "connectors"]
    if options.growth:
        return [case for case in CASES.values() if case.group == "growth"]
    if options.again:
        return []
    return [case for case in CASES.values() if case.group == "main" and (case.quick or not options.quick)]


def _marks(case: Case) -> str:
    return f"{case.contender:8} {'quick' if case.quick else case.group if case.group != 'main' else '':10}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--only", action="append", metavar="TEXT", help="one round of cases named so; repeatable")
    parser.add_argument("--growth", action="store_true", help="instead, how cost grows with keys, tasks, levels, roots")
    parser.add_argument("--realtime", action="store_true", help="instead, one round of real time and what is beside it")
    parser.add_argument("--connectors", action="store_true", help="instead, one round of what reads Kafka")
    parser.add_argument("--rounds", type=_at_least_one, help="how often each case is run (3; cases by name: 1)")
    parser.add_argument("--seconds", type=float, help="how long each phase of a case is measured (7)")
    parser.add_argument("--warm-up", type=float, help="seconds before the first phase of a case (7)")
    parser.add_argument("--quick", action="store_true", help="one short round of the most important cases")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--save", type=Path, metavar="FILE", help="where the results are written")
    parser.add_argument(
        "--from",
        dest="again",
        type=Path,
        metavar="FILE",
        help="results of an earlier run: nothing but what --only or --growth says is run, at its pace, and added",
    )
    parser.add_argument("--docs", action="store_true", help="put tables and plots into docs/performance")
    options = parser.parse_args()
    if options.connectors and options.realtime:
        parser.error("--connectors and --realtime are separate runs")
    if options.again and (options.rounds or options.seconds or options.warm_up):
        parser.error("--from continues at the pace of its file: leave out --rounds, --seconds and --warm-up")
    own = _REALTIME_RESULTS if options.realtime else _CONNECTORS_RESULTS if options.connectors else _RESULTS
    options.save = options.save or own
    unknown = [part for part in options.only or () if not any(part in name for name in CASES)]
    if unknown:
        parser.error(f"no case has {unknown[0]!r} in its name; --list prints them")
    return options


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number of rounds from 1 on, not {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
