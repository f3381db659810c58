"""`make faults`: injects faults into a running topology and checks what came of it.

Exit codes: 0 nothing found, 1 an oracle found something, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lab.faults import report
from lab.faults.harness import Result, play
from lab.faults.run import ROOT
from lab.faults.scenarios import SCENARIOS
from lab.faults.stores import KINDS, server
from lab.faults.topology import Load

_PAGES = {kind: ROOT / "docs" / ("reliability.md" if kind == "local" else "storage.md") for kind in KINDS}
_SHORT = ("mixed",)
_SHORT_LOAD = Load(messages=4000, seconds=16)


def main() -> int:
    """Plays the scenarios that were asked for; returns the exit code."""
    options = _options()
    fitting = [scenario for scenario in SCENARIOS if options.storage in scenario.on]
    chosen = [scenario for scenario in fitting if scenario.name in (options.only or _names())]
    load, times = Load(options.messages, options.seconds), options.times
    if options.short:
        chosen = [scenario for scenario in fitting if scenario.name in (options.only or _SHORT)]
        load, times = _SHORT_LOAD, 1
    progress = Console(stderr=True, highlight=False)
    if options.list:
        sys.stdout.writelines(f"{scenario.name:18} {scenario.title}\n" for scenario in fitting)
        return 0
    if options.partitions:
        extra = {"topology.partitions": options.partitions}
        chosen = [replace(scenario, conf={**scenario.conf, **extra}) for scenario in chosen]
    if options.docs and (options.partitions or len(chosen) < len(fitting)):
        progress.print("--docs goes with all scenarios, as they are: the page shows them all")
        return 2
    seed = options.seed if options.seed is not None else str(random.SystemRandom().randrange(10**6))
    progress.print(f"seed {seed}, {load.messages:,} messages in {load.seconds:.0f} s, {len(chosen)} scenarios")
    # So that a run which is broken off leaves no processes either.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    base = Path(tempfile.mkdtemp(prefix="faults-"))
    results: list[Result] = []
    with server(options.storage, base / options.storage) as store:
        for number in range(options.rounds):
            for scenario in chosen:
                folder = base / f"{scenario.name}-{number}"
                at = f"{seed}/{number}"
                result = play(scenario, load, at, times, folder, patience=options.patience, server=store)
                results.append(result)
                _tell(progress, result, folder)
    shutil.rmtree(base / options.storage, ignore_errors=True)
    if not any(base.iterdir()):
        base.rmdir()
    if options.json:
        sys.stdout.write(report.as_json(results, load, seed) + "\n")
    else:
        report.show(results, Console())
    if options.docs and report.passed(results):
        report.write_docs(results, load, _PAGES[options.storage], options.storage)
    return 0 if report.passed(results) else 1


def _tell(progress: Console, result: Result, folder: Path) -> None:
    progress.print(f"{time.strftime('%H:%M:%S')} {report.summary(result)}", markup=False)
    for injection in result.injections:
        recovery = "not recovered" if injection.recovery_secs is None else f"{injection.recovery_secs:.1f} s"
        progress.print(f"    {injection.what}: {recovery} ({injection.proof:.300})", markup=False)
    for problem in result.problems:
        progress.print(f"    {problem}", style="red", markup=False)
    if result.problems:
        progress.print(f"    what the run left is in {folder}", markup=False)


def _names() -> list[str]:
    return [scenario.name for scenario in SCENARIOS]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    parser.add_argument("--only", action="append", choices=_names(), metavar="NAME", help="this one; may be repeated")
    parser.add_argument(
        "--storage", choices=KINDS, default=KINDS[0], help="where the checkpoint is; a directory by default"
    )
    parser.add_argument("--messages", type=_even, default=Load.messages, help="unique messages a run; an even number")
    parser.add_argument("--seconds", type=float, default=Load.seconds, help="how long emitting them takes")
    parser.add_argument("--times", type=int, default=3, help="how often each fault is injected in a run")
    parser.add_argument("--rounds", type=int, default=1, help="how often each scenario is run")
    parser.add_argument("--seed", help="of an earlier run, for the same moments and victims; random by default")
    parser.add_argument("--partitions", type=int, help="topology.partitions; with 1, one operator executes all stages")
    parser.add_argument("--patience", type=float, default=1.0, help="factor on the times allowed for recovery")
    parser.add_argument("--short", action="store_true", help="the form that `make test` runs: kills of each kind, once")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/ if all is well")
    return parser.parse_args()


def _even(text: str) -> int:
    number = int(text)
    if number < 100 or number % 2:
        raise argparse.ArgumentTypeError(f"messages are joined in pairs: an even number from 100 on, not {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
