"""Running the tests' scripts, and the command line, in separate processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def environment(tmp: Path) -> dict[str, str]:
    """Returns the environment of a child: it finds this checkout and the topologies, and has its own temp folder."""
    tmp.mkdir(exist_ok=True)
    path = os.pathsep.join([str(ROOT), str(HERE)])
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp)}


def short_form(suite: str, *options: str, seconds: float) -> list[dict[str, Any]]:
    """Runs the short form of one of the laboratory's suites, which must pass; returns its scenarios."""
    done = subprocess.run(
        [sys.executable, "-m", suite, "--short", "--json", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scenarios: list[dict[str, Any]] = json.loads(done.stdout)["scenarios"]
    return scenarios


@contextmanager
def script(tmp: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Starts a Python process in its own group; whatever is left of the group at the end is killed."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(tmp),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill_group(process)
        process.communicate()


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kills a process and all that it started at once."""
    for member in members(process.pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
            member.suspend()  # or it would start another while its neighbours die
    for member in members(process.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()


def members(session: int) -> list[psutil.Process]:
    """Returns the living processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def killed(process: subprocess.Popen[str]) -> bool:
    return process.wait(60) == -signal.SIGKILL
