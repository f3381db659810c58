"""`make pacemaker-bench`: how many supervisors' heartbeats a server can handle: ours, Storm's Pacemaker, and ZooKeeper.

Exit codes: 0 all targets are met, 1 one is not or time was up, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from lab.benchmarks.pacemaker import report
from lab.benchmarks.pacemaker.contenders import CONTENDERS, ROOT
from lab.benchmarks.pacemaker.measure import Measured, measure
from lab.suite import command
from storm_on_spark.api.errors import SetupError

SIZES = (2_000, 20_000)
STEPS = (270, 900, 2_700, 4_500, 6_000, 12_000, 16_000, 20_000)
"""Supervisors."""
SURVIVOR_STEPS = (2_700, 6_000)
WARM_UP = {"ours": 9.0, "storm": 20.0, "zookeeper": 20.0, "survivor": 12.0}
"""Seconds of load before the measurement: a JVM compiles what it runs."""
_POINT_SECS = 120.0
"""More than a measurement usually takes: none begins that would end after the limit of `--minutes`."""
_PAGE = ROOT / "docs" / "pacemaker.md"


def main() -> int:
    """Runs the requested measurements; returns the exit code."""
    options = _options()
    progress = Console(stderr=True, highlight=False)
    if os.cpu_count() == 1:
        progress.print("the generator and the server need a core each; this machine has one")
        return 2
    if options.realtime:
        # Other work on the machine would add to the time of a heartbeat. Children inherit this.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    found = [Measured(**row) for file in options.earlier for row in json.loads(file.read_text("utf-8"))]
    end = time.monotonic() + 60 * options.minutes
    left_out: list[str] = []

    def point(name: str, size: int, supervisors: int) -> Measured | None:
        if time.monotonic() + _POINT_SECS > end:
            left_out.append(f"{name}, {supervisors:,} supervisors, {size:,} bytes")
            return None
        warm_up = WARM_UP[name] if options.warm_up is None else options.warm_up
        with CONTENDERS[name](options.server_core, supervisors * 4) as running:
            measured = measure(running, supervisors, size, options.seconds, options.core, warm_up)
        progress.print(report.line(measured), markup=False)
        return measured

    try:
        for size, name in wanted(options.size, options.contender, earlier=bool(found)):
            steps = options.supervisors or (SURVIVOR_STEPS if name == "survivor" else STEPS)
            found += grow(steps, partial(point, name, size), refine=not options.supervisors)
    except SetupError as error:
        progress.print(f"{name}: {error}", markup=False)
        return 2
    finally:
        if options.save:
            options.save.write_text(json.dumps([each.to_dict() for each in found], indent=1) + "\n", "utf-8")
    for each in left_out:
        progress.print(f"not measured within {options.minutes:g} minutes: {each}", style="red", markup=False)
    document = json.dumps([each.to_dict() for each in found])
    command.hand_out(
        options, document, lambda console: console.print(report.tables(found), markup=False, soft_wrap=True)
    )
    if options.docs:
        report.write_docs(found, _PAGE)
    return 0 if not left_out and all(met for _, met, _ in report.targets(found)) else 1


def wanted(
    sizes: Sequence[int] | None, contenders: Sequence[str] | None, *, earlier: bool = False
) -> list[tuple[int, str]]:
    """Returns what is measured: bytes of a heartbeat, and the contender.

    Args:
        sizes: as asked for; both sizes for None.
        contenders: as asked for; all of them for None, and none where there are earlier results.
        earlier: whether there are.
    """
    names = contenders or ([] if earlier else list(CONTENDERS))
    return [(size, name) for size in sizes or SIZES for name in names]


def grow(steps: Sequence[int], point: Callable[[int], Measured | None], *, refine: bool = True) -> list[Measured]:
    """Measures with more and more supervisors, until there are too many.

    Args:
        steps: numbers of supervisors.
        point: measures with a number of supervisors; None if there is no time for it.
        refine: whether to try one more load, between the last sustained and the first failed one.

    Returns: The measurements, by number of supervisors.
    """
    found: list[Measured] = []
    for supervisors in steps:
        measured = point(supervisors)
        if measured is None:
            return found
        found.append(measured)
        if not measured.sustained:
            break
    if refine and len(found) > 1 and not found[-1].sustained and not found[-1].of_generator:
        between = (found[-2].supervisors + found[-1].supervisors) // 2
        measured = point(between)
        if measured is not None:
            found.insert(-1, measured)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.pacemaker", description=__doc__.splitlines()[0])
    parser.add_argument("--contender", action="append", choices=list(CONTENDERS), help="this one; may be repeated")
    parser.add_argument("--size", action="append", type=int, help="bytes of a heartbeat; may be repeated")
    parser.add_argument("--supervisors", action="append", type=int, help="how many; may be repeated")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long each load is measured")
    parser.add_argument("--warm-up", type=float, help="seconds of load before that; by default what each needs")
    parser.add_argument("--minutes", type=float, default=40.0, help="begin nothing that would end later")
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
