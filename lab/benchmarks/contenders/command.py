"""The command line, as a user calls it: how long from the command to the first ack."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from lab.benchmarks.cases import Case
from lab.benchmarks.contenders import Figures, Setup

_TOPOLOGY = Path(__file__).parents[1] / "workloads" / "first_ack.py"
_SECS = 120


def run(case: Case, setup: Setup) -> Figures:
    """Runs a short word count and reads when its spout heard of the first ack."""
    told = setup.folder / "first-ack"
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "storm_on_spark.cli", "run", str(_TOPOLOGY), "--quiet", "-c", f"first.ack.file={told}"],
        check=True,
        timeout=_SECS,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )
    return {"phases": {}, "first_ack_secs": float(told.read_text()) - started}
