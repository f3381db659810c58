"""A process ends with its parent: running, stopped, and with children that inherited its sockets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import eventually

from storm_on_spark.runtime.processes.sessions import started_at

CHILD = """
import os, sys, time
from storm_on_spark.runtime.processes.parent import die_with
die_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(600)
"""
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a stopped process is ended by a signal of Linux's")
@pytest.mark.parametrize("stopped", [False, True])
def test_a_process_ends_when_its_parent_is_killed(stopped: bool) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
        started = started_at(child)
        assert started
        if stopped:
            os.kill(child, signal.SIGSTOP)
        parent.kill()
        parent.wait()
        eventually(lambda: started_at(child) != started, "it outlives its parent")


def test_a_process_whose_parent_is_gone_before_it_looks_ends_at_once() -> None:
    child = subprocess.run([sys.executable, "-c", CHILD, "1"], cwd=Path(__file__).parents[4], timeout=60)
    assert child.returncode == -signal.SIGKILL


WATCHED = """
import os, sys, time
from storm_on_spark.runtime.processes import parent
parent.killed_with_parent = lambda *_: None
if sys.argv[2] == "polled":
    del os.pidfd_open
parent.die_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["told", "polled"])
def test_a_process_that_gets_no_signal_watches_its_parent(how: str) -> None:
    code = PARENT.replace("str(os.getpid())", "str(os.getpid()), sys.argv[2]")
    parent = subprocess.Popen([sys.executable, "-c", code, WATCHED, how], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
        started = started_at(child)
        assert started
        parent.kill()
        parent.wait()
        eventually(lambda: started_at(child) != started, "it outlives its parent")
