"""Frameworks that process a given number of events in one process, with scripts of their own: <framework>/windows.py.

A script prints the processor seconds and seconds of its run, without the creation of the events.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab.benchmarks.cases import FULL, Case
from lab.benchmarks.contenders import Figures, Setup, bytewax, environments, figures

_ROOT = Path(__file__).parents[3]
_WANTED = {"bytewax": bytewax.WANTED, "pathway": "pathway==0.33.0"}
_RUN_SECS = 300


def prepare(framework: str) -> None:
    """Makes the framework's environment unless it exists; see `environments.make`."""
    environments.make(_ROOT / "build" / framework, _WANTED[framework])


def run(case: Case, setup: Setup) -> Figures:
    """Runs a script of the framework that the case's workload names."""
    script = _ROOT / "lab" / "benchmarks" / case.workload / case.options.get("script", "windows.py")
    python = environments.python(_ROOT / "build" / case.workload)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    events = case.options["events"]
    done = subprocess.run(
        [python, script, str(events), str(case.options.get("keys", setup.source))],
        cwd=setup.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        timeout=_RUN_SECS,
        check=True,
    )
    used, took = map(float, done.stdout.split())
    return {"phases": {FULL.name: figures(events, took, used, None)}}
