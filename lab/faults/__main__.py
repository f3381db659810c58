"""`make faults`: injects faults into a running topology and checks the outcome.

Exit codes: 0 nothing found, 1 an oracle found something, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from dataclasses import replace

from rich.console import Console

from lab.faults import report
from lab.faults.harness import Result, play
from lab.faults.scenarios import SCENARIOS
from lab.faults.stores import KINDS, server
from lab.load.topology import Load
from lab.suite import ROOT, command
from lab.suite.scenario import passed

_PAGES = {kind: ROOT / "docs" / ("reliability.md" if kind == "local" else "storage.md") for kind in KINDS}
_SHORT = ("mixed",)
_SHORT_LOAD = Load(messages=4000, seconds=16)


def main() -> int:
    """Plays the requested scenarios; returns the exit code."""
    options = _options()
    real_time = options.profile == "realtime"
    fitting = [
        scenario
        for scenario in SCENARIOS
        if options.storage in scenario.on and not (real_time and scenario.micro_batches_only)
    ]
    if options.list:
        return command.list_scenarios(fitting)
    chosen = command.choose(fitting, options, _SHORT, [scenario.name for scenario in fitting])
    load, times = (_SHORT_LOAD, 1) if options.short else (Load(options.messages, options.seconds), options.times)
    progress = Console(stderr=True, highlight=False)
    given = {"topology.partitions": options.partitions, "topology.profile": options.profile}
    extra = {key: value for key, value in given.items() if value is not None}
    if extra:
        chosen = [replace(scenario, conf={**scenario.conf, **extra}) for scenario in chosen]
    where = [] if options.storage == KINDS[0] else ["--storage", options.storage]
    where += [] if options.profile is None else ["--profile", options.profile]
    if options.docs:
        # Fail now rather than after an hour.
        try:
            report.rows_before(load, _PAGES[options.storage], where)
        except ValueError as error:
            progress.print(f"lab.faults: {error}", soft_wrap=True, markup=False)
            return 2
    seed = options.seed if options.seed is not None else str(random.SystemRandom().randrange(10**6))
    progress.print(f"seed {seed}, {load.messages:,} messages in {load.seconds:.0f} s, {len(chosen)} scenarios")
    results: list[Result] = []
    with command.new_folder("faults") as base:
        with server(options.storage, base / options.storage) as store:
            for number in range(options.rounds):
                for scenario in chosen:
                    folder = base / f"{scenario.name}-{number}"
                    at = f"{seed}/{number}"
                    result = play(scenario, load, at, times, folder, patience=options.patience, server=store)
                    results.append(result)
                    command.tell(progress, result, report.summary(result), folder)
        shutil.rmtree(base / options.storage, ignore_errors=True)
    command.hand_out(options, report.as_json(results, load, seed), lambda console: report.show(results, console))
    if options.docs and passed(results):
        report.write_docs(results, load, _PAGES[options.storage], where, [scenario.title for scenario in fitting])
    return 0 if passed(results) else 1


def _options() -> argparse.Namespace:
    parser = command.options_of("lab.faults", __doc__, SCENARIOS, times=3)
    parser.add_argument(
        "--storage", choices=KINDS, default=KINDS[0], help="where the checkpoint is; a directory by default"
    )
    parser.add_argument("--messages", type=_even, default=Load.messages, help="unique messages a run; an even number")
    parser.add_argument("--seconds", type=float, default=Load.seconds, help="how long emitting them takes")
    parser.add_argument("--rounds", type=int, default=1, help="how often each scenario is run")
    parser.add_argument("--seed", help="of an earlier run, for the same moments and victims; random by default")
    parser.add_argument("--profile", help="topology.profile, such as realtime")
    parser.add_argument("--partitions", type=int, help="topology.partitions; with 1, one operator executes all stages")
    return parser.parse_args()


def _even(text: str) -> int:
    number = int(text)
    if number < 100 or number % 2:
        raise argparse.ArgumentTypeError(f"messages are joined in pairs: an even number from 100 on, not {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
