"""Runs the cases, round after round, each in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lab.benchmarks.cases import CASES, Case
from lab.benchmarks.contenders import NotThereError, Setup, bytewax, script, storm
from lab.benchmarks.workloads.data import sentences_file
from lab.benchmarks.workloads.topics import broker

_ROOT = Path(__file__).parents[2]
_CASE_SECS = 1200.0
_SAID_BYTES = 2000


@dataclass
class Outcome:
    """The outcome of a case, over all rounds."""

    case: Case
    runs: list[dict[str, Any] | None] = field(default_factory=list)
    """The measurements of each round; None for a failed one."""
    skipped: str | None = None
    """The reason why it can't be run here."""
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Returns the outcome in terms of JSON."""
        return {"runs": self.runs, "skipped": self.skipped, "problems": self.problems}


@dataclass(frozen=True)
class Pace:
    """The durations.

    Args:
        rounds: how often each case runs.
        seconds: how long each phase is measured.
        warm_up: seconds before the first phase of a run.
        settle: seconds before each other phase.
    """

    rounds: int = 3
    seconds: float = 7.0
    warm_up: float = 7.0
    settle: float = 2.5


QUICK = Pace(rounds=1, seconds=4.0, warm_up=5.0, settle=2.0)


def play(
    cases: Sequence[Case],
    pace: Pace,
    tell: Callable[[str], None],
    keep: Callable[[Mapping[str, Outcome]], None] = lambda outcomes: None,
) -> dict[str, Outcome]:
    """Runs all cases in each round, forwards in one and backwards in the next, and returns the outcomes.

    Ctrl-C ends it; the measurements until then are returned.

    Args:
        cases: to be run.
        pace: how often and how long.
        tell: called with a line that shows progress.
        keep: called after each case with all measurements so far.
    """
    outcomes = {case.name: Outcome(case) for case in cases}
    _prepare(outcomes, tell)
    folder = Path(tempfile.mkdtemp(prefix="benchmarks-"))
    source = sentences_file(folder / "sentences.txt")
    with_kafka = any(case.group == "connectors" for case in cases)
    try:
        with broker(source, tell) if with_kafka else contextlib.nullcontext("") as servers:
            _rounds(cases, outcomes, pace, tell, keep, (source, folder, servers))
    except KeyboardInterrupt:
        tell("broken off; what there is counts")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def _rounds(
    cases: Sequence[Case],
    outcomes: Mapping[str, Outcome],
    pace: Pace,
    tell: Callable[[str], None],
    keep: Callable[[Mapping[str, Outcome]], None],
    where: tuple[Path, Path, str],
) -> None:
    source, folder, servers = where
    for number in range(pace.rounds):
        for case in list(cases)[:: -1 if number % 2 else 1]:
            outcome = outcomes[case.name]
            if outcome.skipped is None and not (case.side and number % 2):
                began = time.monotonic()
                own = Path(tempfile.mkdtemp(dir=folder))
                run = _run(case, pace, source, own, outcome.problems, servers)
                outcome.runs.append(run)
                keep(outcomes)
                took = time.monotonic() - began
                tell(f"round {number + 1} of {pace.rounds}: {case.name}: {_said(run, outcome)} ({took:.0f} s)")


def _prepare(outcomes: dict[str, Outcome], tell: Callable[[str], None]) -> None:
    """Sets up contenders; records those that can't be set up."""
    storms = [case for case in CASES.values() if case.contender == "storm"]
    contenders: tuple[tuple[str, list[Case], Callable[[], None]], ...] = (
        ("Apache Storm", storms, partial(storm.prepare, python=False)),
        (
            "Apache Storm with pystorm",
            [case for case in storms if case.workload.endswith("Python")],
            partial(storm.prepare, python=True),
        ),
        ("bytewax", [case for case in CASES.values() if case.contender == "bytewax"], bytewax.prepare),
        *(
            (case.name, [case], partial(script.prepare, case.workload))
            for case in CASES.values()
            if case.contender == "script"
        ),
    )
    for what, cases, prepare in contenders:
        concerned = [outcomes[case.name] for case in cases if case.name in outcomes]
        if concerned:
            tell(f"setting up {what}")
            try:
                prepare()
            except NotThereError as error:
                tell(str(error))
                for outcome in concerned:
                    outcome.skipped = str(error)


def _run(
    case: Case, pace: Pace, source: Path, folder: Path, problems: list[str], servers: str
) -> dict[str, Any] | None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "jobs"))),
        "TMPDIR": str(folder),
    }
    setup = Setup(source, folder, time.monotonic(), pace.seconds, pace.warm_up, pace.settle, servers)
    command = [sys.executable, "-m", "lab.benchmarks.child", case.name, json.dumps(setup.to_dict())]
    with (folder / "errors").open("w+b") as errors:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            answer, _ = process.communicate(timeout=_CASE_SECS)
            if process.returncode == 0:
                result: dict[str, Any] = json.loads(answer.splitlines()[-1])
                return result
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SAID_BYTES))
            said = errors.read().decode(errors="replace").strip()
            problems.append(f"{case.name} ended with exit code {process.returncode}: {said}")
        except subprocess.TimeoutExpired:
            problems.append(f"{case.name} did not end within {_CASE_SECS:.0f} s")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            shutil.rmtree(folder, ignore_errors=True)
    return None


def _said(run: dict[str, Any] | None, outcome: Outcome) -> str:
    """Returns the figures of a run in a few words."""
    if run is None:
        return outcome.problems[-1]
    words = []
    for name, phase in run["phases"].items():
        latency = phase["latency_ms"]
        more = f", p50 {latency['p50']:.0f} ms" if latency else ""
        if phase["roots_per_second"]:
            words.append(f"{name}: {phase['roots_per_second']:,.0f}/s{more}")
        else:
            words.append(f"{name}: {100 * phase['cores_used']:.1f} % of a core")
    if not words:
        words.append(f"{run['first_ack_secs']:.1f} s")
    return "; ".join(words)
