"""Plays scenarios: one run each, then the oracles."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.faults.oracles import Evidence, Figures, check
from lab.faults.run import Injection, Run, RunError
from lab.faults.scenarios import Scenario
from lab.faults.stores import Server
from lab.faults.topology import Load


@dataclass
class Result:
    """What came of a scenario."""

    scenario: str
    title: str
    seed: str
    injections: list[Injection] = field(default_factory=list)
    figures: Figures | None = None
    problems: list[str] = field(default_factory=list)
    """What must not be; empty when the scenario passed."""
    skipped: str | None = None
    """Why it was not run."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns the result in terms of JSON."""
        return {**asdict(self), "passed": not self.problems and self.skipped is None}


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
        folder: for what the run leaves; made, and removed when the scenario passed.
        server: of the store on which the checkpoint is; a directory for None.
        patience: factor on the time within which progress must resume, for machines that do other work too.
    """
    result = Result(scenario.name, scenario.title, seed, skipped=scenario.missing())
    if result.skipped is not None:
        return result
    started = time.monotonic()
    run = Run(folder, load, random.Random(f"{seed}/{scenario.name}"), scenario.conf, scenario.master)
    run.store = None if server is None else server.folder(folder.name)
    result.injections, result.problems = run.injections, run.problems
    try:
        scenario.play(run, times)
        run.completed()
        run.check_nothing_left()
    except (RunError, TimeoutError) as error:
        result.problems.append(str(error))
    finally:
        run.end()
    evidence = Evidence.read(folder)
    flags = {"host_dies": scenario.host_dies, "strict_fails": scenario.nothing_but_poison_fails}
    result.figures, wrong = check(load, evidence, **flags)
    if evidence.state is not None or not result.problems:
        # Of a run that broke off, all that is missing is no news.
        result.problems += wrong
    _check_recovery(scenario, result, patience)
    if scenario.limit_secs is not None and len(result.injections) < times:
        result.problems.append(f"the fault was injected {len(result.injections)} times, not {times}")
    result.seconds = time.monotonic() - started
    if not result.problems:
        shutil.rmtree(folder)
    return result


def _check_recovery(scenario: Scenario, result: Result, patience: float) -> None:
    for injection in result.injections:
        limit = (scenario.limit_secs or 0.0) * patience
        if injection.recovery_secs is not None and injection.recovery_secs > limit:
            result.problems.append(
                f"{injection.what}: progress resumed after {injection.recovery_secs:.1f} s, not within {limit:.0f} s"
            )
