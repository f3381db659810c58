"""Plays scenarios: one run each, then the oracles."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.faults.run import Injection, Run
from lab.faults.scenarios import DRIVER_SECS, Scenario
from lab.faults.stores import Server
from lab.load import sinks
from lab.load.oracles import Evidence, Figures, check
from lab.load.topology import Load
from lab.suite.scenario import Result as AnyResult
from lab.suite.scenario import ScenarioError, judging


@dataclass
class Result(AnyResult):
    """The result of a scenario."""

    seed: str = ""
    injections: Sequence[Injection] = field(default_factory=list)
    late: float | None = None
    """The limit in seconds that a recovery has passed, where patience allowed that."""
    figures: Figures | None = None

    @property
    def label(self) -> str:
        """With its seed."""
        return f"{self.scenario} (seed {self.seed})"

    @property
    def faults(self) -> list[str]:
        """Those that were injected."""
        return [
            f"{each.what}: {'not recovered' if each.recovery_secs is None else f'{each.recovery_secs:.1f} s'} "
            f"({each.proof:.300})"
            for each in self.injections
        ]


def play(
    scenario: Scenario,
    load: Load,
    seed: str,
    times: int,
    folder: Path,
    *,
    patience: float = 1.0,
    server: Server | None = None,
) -> Result:
    """Plays one scenario and applies the oracles.

    Args:
        scenario: which.
        load: what the topology processes.
        seed: decides when faults happen, and to whom.
        times: how often the fault is injected.
        folder: for the run's files; created, and removed if the scenario passed.
        server: of the store with the checkpoint; None for a directory.
        patience: factor on the time within which progress must resume, for machines that do other work too.
    """
    result = Result(scenario.name, scenario.title, skipped=scenario.missing(), seed=seed)
    if result.skipped is not None:
        return result
    load = scenario.load(load)
    with judging(result, folder):
        run = Run(folder, load, random.Random(f"{seed}/{scenario.name}"), scenario.conf, scenario.master)
        run.store = None if server is None else server.folder(folder.name)
        run.tables, run.windows = folder / "tables" if scenario.tables else None, scenario.windows
        result.injections, result.problems = run.injections, run.problems
        try:
            scenario.play(run, times)
            run.completed()
            run.check_nothing_left()
        except (ScenarioError, TimeoutError) as error:
            result.problems.append(str(error))
        finally:
            run.end()
        evidence = Evidence.read(folder)
        flags = {"host_dies": scenario.host_dies, "strict_fails": scenario.nothing_but_poison_fails}
        result.figures, wrong = check(load, evidence, **flags)
        if evidence.state is not None or not result.problems:
            # After an aborted run, missing messages are expected.
            result.problems += wrong
            if run.tables is not None:
                result.problems += sinks.check(run.tables, evidence.sink)
        check_recovery(scenario, result, patience)
        if scenario.limit_secs is not None and len(result.injections) < times:
            result.problems.append(f"the fault was injected {len(result.injections)} times, not {times}")
    return result


def check_recovery(scenario: Scenario, result: Result, patience: float) -> None:
    """Records recoveries that took too long, and whether one passed only because of `patience`."""
    for injection in result.injections:
        limit = scenario.limit_secs or 0.0
        if injection.cold:
            limit = max(limit, DRIVER_SECS)
        if injection.recovery_secs is None or injection.recovery_secs <= limit:
            continue
        if injection.recovery_secs <= limit * patience:
            result.late = limit
        else:
            result.problems.append(
                f"{injection.what}: progress resumed after {injection.recovery_secs:.1f} s, "
                f"not within {limit * patience:.0f} s"
            )
