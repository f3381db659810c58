"""`make pacemaker-bench`: how many supervisors' heartbeats a server bears: ours, Storm's Pacemaker, and ZooKeeper.

Exit codes: 0 all targets are met, 1 one is not, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from rich.console import Console

from lab.benchmarks.pacemaker import report
from lab.benchmarks.pacemaker.contenders import CONTENDERS, ROOT
from lab.benchmarks.pacemaker.measure import Measured, measure
from storm_on_spark.api.errors import SetupError

SIZES = (2_000, 20_000)
STEPS = (270, 900, 2_700, 4_500, 6_000, 12_000)
"""Supervisors."""
_PAGE = ROOT / "docs" / "pacemaker.md"


def main() -> int:
    """Measures what was asked for; returns the exit code."""
    options = _options()
    progress = Console(stderr=True, highlight=False)
    if os.cpu_count() == 1:
        progress.print("the generator and the server need a core each; this machine has one")
        return 2
    if options.realtime:
        # What else the machine does would show as time that a heartbeat takes. Children inherit it.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    found = [Measured(**row) for file in options.earlier for row in json.loads(file.read_text("utf-8"))]
    try:
        for name in options.contender or list(CONTENDERS) * (not found):
            for size in options.size or SIZES:
                found += _grow(name, size, options, progress)
    except SetupError as error:
        progress.print(f"{name}: {error}", markup=False)
        return 2
    finally:
        if options.save:
            options.save.write_text(json.dumps([each.to_dict() for each in found], indent=1) + "\n", "utf-8")
    if options.json:
        sys.stdout.write(json.dumps([each.to_dict() for each in found]) + "\n")
    else:
        sys.stdout.write(report.tables(found))
    if options.docs:
        report.write_docs(found, _PAGE)
    return 0 if all(met for _, met, _ in report.targets(found)) else 1


def _grow(name: str, size: int, options: argparse.Namespace, progress: Console) -> list[Measured]:
    """Measures a contender with more and more supervisors, until it can't bear more."""
    found: list[Measured] = []
    for supervisors in options.supervisors or STEPS:
        with CONTENDERS[name](options.server_core, supervisors * 4) as running:
            found.append(measure(running, supervisors, size, options.seconds, options.core, options.warm_up))
        progress.print(report.line(found[-1]), markup=False)
        if not found[-1].sustained:
            break
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.pacemaker", description=__doc__.splitlines()[0])
    parser.add_argument("--contender", action="append", choices=list(CONTENDERS), help="this one; may be repeated")
    parser.add_argument("--size", action="append", type=int, help="bytes of a heartbeat; may be repeated")
    parser.add_argument("--supervisors", action="append", type=int, help="how many; may be repeated")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each load is measured")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds of load before that")
    parser.add_argument("--server-core", type=int, default=0, help="core of the server")
    parser.add_argument("--core", type=int, default=1, help="core of the generator and of Nimbus")
    parser.add_argument("--realtime", action="store_true", help="run before all others, as root, on a busy machine")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/pacemaker.md")
    parser.add_argument(
        "--from", dest="earlier", action="append", type=Path, default=[], metavar="FILE", help="add results saved there"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
