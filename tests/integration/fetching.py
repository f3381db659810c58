"""Programs from Debian and artifacts from Maven, for tests that run them beside ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FETCH_SECS = 240


def need(program: str, package: str) -> str:
    """Returns a program; has Debian install it where that is allowed, and else fails the test with a sentence."""
    found = shutil.which(program)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", package]):
            subprocess.run(["apt-get", *command], env=environment, capture_output=True, timeout=FETCH_SECS, check=False)
        found = shutil.which(program)
    if found is None:
        pytest.fail(f"there is no {program} here, which this test needs: install Debian's {package}")
    return found


def run(command: list[str]) -> None:
    """Runs a command that fetches or compiles, and fails the test with what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECS, check=False)
    if done.returncode:
        pytest.fail(f"{Path(command[0]).name} could not fetch or compile Storm: {done.stdout}{done.stderr}")
