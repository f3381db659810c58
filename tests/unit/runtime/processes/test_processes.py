"""Processes by session."""

from __future__ import annotations

import os
import subprocess
import sys

from storm_on_spark.runtime.processes.sessions import kill_session, session_members, started_at, this_kernel

CHILD = """
import subprocess, sys, time
child = "import os, time; os.setpgid(0, 0); print(1, flush=True); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(60)
"""


def test_a_session_has_all_groups_and_outlives_its_leader() -> None:
    leader = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert leader.stdout is not None
        leader.stdout.readline()  # the child is in its own group by now
        started = started_at(leader.pid)
        assert started is not None
        members = session_members(leader.pid, started)
        assert leader.pid in members
        (child,) = [pid for pid in members if pid != leader.pid]
        assert os.getpgid(child) == child
        leader.kill()
        leader.wait()
        assert session_members(leader.pid, started) == [child]
        assert started_at(leader.pid) is None
        assert kill_session(leader.pid, started) == [child]
        while session_members(leader.pid, started):
            pass
    finally:
        kill_session(leader.pid)
        leader.wait()
        leader.stdout.close()


def test_a_number_that_is_used_again_is_another_session() -> None:
    session = os.getsid(0)
    assert os.getpid() in session_members(session, started_at(session))
    assert session_members(session, "long ago") == ([] if started_at(session) else session_members(session))
    assert started_at(1 << 30) is None
    assert kill_session(1 << 30) == []


def test_processes_of_one_machine_have_one_kernel() -> None:
    code = "from storm_on_spark.runtime.processes.sessions import this_kernel; print(this_kernel())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == this_kernel()
