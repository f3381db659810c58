"""`make failover`: injects faults into a running cluster, checks the outcome, and measures.

Exit codes: 0 nothing found, 1 an oracle found something or a limit was exceeded, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from rich.console import Console

from lab.failover import report
from lab.failover.harness import Result, play, together
from lab.failover.scenarios import SCENARIOS
from lab.suite import ROOT, command
from lab.suite.scenario import passed
from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble

_PAGE = ROOT / "docs" / "high-availability.md"
_SHORT = ("short",)


def main() -> int:
    """Plays the requested scenarios; returns the exit code."""
    options = _options()
    if options.list:
        return command.list_scenarios(SCENARIOS)
    progress = Console(stderr=True, highlight=False)
    everything = [scenario.name for scenario in SCENARIOS if scenario.name not in _SHORT]
    earlier = [result for file in options.earlier for result in report.from_json(file.read_text("utf-8"))]
    chosen = command.choose(SCENARIOS, options, _SHORT, [] if earlier else everything)
    chosen = [scenario for scenario in chosen if not (options.no_spark and scenario.spark)]
    # Lost connections are expected here.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    played: list[Result] = []
    with command.new_folder("failover") as base:
        progress.print(f"{len(chosen)} scenarios; files are in {base}")
        if chosen:
            with ZooKeeperEnsemble(3) as ensemble:
                for scenario in chosen:
                    folder = base / scenario.name
                    times = 1 if options.short else options.times
                    result = play(scenario, ensemble, times, folder, options.patience, options.pacemakers)
                    played.append(result)
                    command.tell(progress, result, report.summary(result), folder)
    found = {result.scenario: result for result in together([*earlier, *played])}
    results = [found[scenario.name] for scenario in SCENARIOS if scenario.name in found]
    document = report.as_json(results)
    if options.save:
        options.save.write_text(document + "\n", "utf-8")
    command.hand_out(options, document, lambda console: report.show(results, console))
    if options.docs:
        titles = [scenario.title for scenario in SCENARIOS if scenario.name in everything]
        missing = report.write_docs([result for result in results if result.scenario in everything], _PAGE, titles)
        if missing:
            progress.print(f"--docs: neither played nor in the page: {'; '.join(missing)}", markup=False)
            return 2
    return 0 if passed(results) else 1


def _options() -> argparse.Namespace:
    parser = command.options_of("lab.failover", __doc__, SCENARIOS, times=10)
    parser.add_argument("--no-spark", action="store_true", help="leave out what needs real drivers")
    parser.add_argument("--pacemakers", type=int, default=0, help="how many keep heartbeats; ZooKeeper does by default")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the results there, too")
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
