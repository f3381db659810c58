"""The hot paths are not much slower than they were; compared within one run, so it holds on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.soak
def test_processor_time_of_a_tuple_against_a_plain_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.benchmarks.studies.regression"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: figure for name, figure in found.items() if figure["ratio"] > figure["limit"]} == {}
