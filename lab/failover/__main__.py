"""`make failover`: injects faults into a running cluster, checks what came of it, and measures.

Exit codes: 0 nothing found, 1 an oracle found something or a limit was not kept, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from lab.failover import report
from lab.failover.harness import Result, passed, play, together
from lab.failover.process import ROOT
from lab.failover.scenarios import SCENARIOS
from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble

_PAGE = ROOT / "docs" / "high-availability.md"
_SHORT = ("short",)


def main() -> int:
    """Plays the scenarios that were asked for; returns the exit code."""
    options = _options()
    progress = Console(stderr=True, highlight=False)
    if options.list:
        sys.stdout.writelines(f"{scenario.name:12} {scenario.title}\n" for scenario in SCENARIOS)
        return 0
    everything = [name for name in _names() if name not in _SHORT]
    earlier = [result for file in options.earlier for result in report.from_json(file.read_text("utf-8"))]
    wanted = options.only or (_SHORT if options.short else [] if earlier else everything)
    chosen = [
        scenario for scenario in SCENARIOS if scenario.name in wanted and not (options.no_spark and scenario.spark)
    ]
    # Whose connections are lost is no news here.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    # So that a run which is broken off leaves no processes either.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    base = Path(tempfile.mkdtemp(prefix="failover-"))
    played: list[Result] = []
    progress.print(f"{len(chosen)} scenarios; files are in {base}")
    if chosen:
        with ZooKeeperEnsemble(3) as ensemble:
            for scenario in chosen:
                folder = base / scenario.name
                times = 1 if options.short else options.times
                played.append(play(scenario, ensemble, times, folder, options.patience, options.pacemakers))
                _tell(progress, played[-1], folder)
    found = {result.scenario: result for result in together([*earlier, *played])}
    results = [found[name] for name in _names() if name in found]
    if not any(base.iterdir()):
        base.rmdir()
    if options.save:
        options.save.write_text(report.as_json(results) + "\n", "utf-8")
    if options.json:
        sys.stdout.write(report.as_json(results) + "\n")
    else:
        report.show(results, Console())
    if options.docs:
        titles = [scenario.title for scenario in SCENARIOS if scenario.name in everything]
        missing = report.write_docs([result for result in results if result.scenario in everything], _PAGE, titles)
        if missing:
            progress.print(f"--docs: neither played nor in the page: {'; '.join(missing)}", markup=False)
            return 2
    return 0 if passed(results) else 1


def _tell(progress: Console, result: Result, folder: Path) -> None:
    progress.print(f"{time.strftime('%H:%M:%S')} {report.summary(result)}", markup=False)
    for what, proof in result.injections:
        progress.print(f"    {what} ({proof:.300})", markup=False)
    for problem in result.problems:
        progress.print(f"    {problem}", style="red", markup=False)
    if result.problems:
        progress.print(f"    what the run left is in {folder}", markup=False)


def _names() -> list[str]:
    return [scenario.name for scenario in SCENARIOS]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.failover", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    parser.add_argument("--only", action="append", choices=_names(), metavar="NAME", help="this one; may be repeated")
    parser.add_argument("--times", type=int, default=10, help="how often a fault is injected that gives a figure")
    parser.add_argument("--patience", type=float, default=1.0, help="factor on the limits of what is measured")
    parser.add_argument("--short", action="store_true", help="the form that `make test` runs")
    parser.add_argument("--no-spark", action="store_true", help="leave out what needs real drivers")
    parser.add_argument("--pacemakers", type=int, default=0, help="how many keep heartbeats; ZooKeeper does by default")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument(
        "--docs", action="store_true", help="put the results into the tables of docs/high-availability.md"
    )
    parser.add_argument(
        "--from",
        dest="earlier",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="add the results saved there",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
