"""Processes are stopped by SIGSTOP, for longer than the message timeout, and continued by SIGCONT."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from lab.faults.run import Run
from lab.suite.processes import wait_for
from lab.suite.scenario import ScenarioError
from storm_on_spark.testing import descendants, python_workers, spout_hosts

TIMEOUT_SECS = 5
PAUSE_SECS = 2.4 * TIMEOUT_SECS
"""More than twice the timeout: messages that are pending when the pause begins fail."""


def everybody(run: Run, times: int) -> None:
    """Stops the driver's Python process, its JVM, its spout hosts, its Python workers: one kind each time."""
    victims = {
        "the driver": lambda: [run.pid],
        "the JVM": lambda: [p.pid for p in descendants(run.pid) if Path(p.command[0]).name == "java"],
        "all spout hosts": lambda: spout_hosts(run.pid),
        "all Python workers": lambda: python_workers(run.pid),
    }
    order = run.shuffled(victims)
    run.start()
    for number in run.moments(max(times, len(order)), PAUSE_SECS):
        who = order[number % len(order)]
        # In real time, a worker may not be needed yet.
        _pause(run, who, wait_for(victims[who], f"{who} are there"))


def live_process(run: Run, times: int) -> None:
    """Stops the leading live process and a following one, in turn; a process that gets no answer from one ends it."""
    roles = run.shuffled(["process", "member"])
    run.start()
    for number in run.moments(times, PAUSE_SECS):
        role = roles[number % len(roles)]
        _pause(run, f"a live {role}", run.live_processes(role)[:1], may_end=True)


def _pause(run: Run, who: str, pids: list[int], *, may_end: bool = False) -> None:
    if not pids:
        raise ScenarioError(f"{who}: there is none to stop")
    for pid in pids:
        stop(pid)
    time.sleep(PAUSE_SECS)
    left = [pid for pid in pids if not (may_end and has_ended(pid))]
    states = {state(pid) for pid in left}
    for pid in left:
        os.kill(pid, signal.SIGCONT)
    over = time.monotonic_ns()
    if states - {"Z"} != {"T"} and left:
        raise ScenarioError(f"{who} did not stand still: states {states}")
    proof = f"state T of {len(left)} processes until SIGCONT" if left else "ended by another while it stood still"
    run.injected(f"SIGSTOP of {who} for {PAUSE_SECS:.0f} s", proof, over)


def stop(pid: int) -> None:
    """Stops a process and waits until it has stopped.

    Raises:
        ScenarioError: it does not.
    """
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 5
    while state(pid) != "T":
        if time.monotonic() > deadline:
            raise ScenarioError(f"process {pid} does not stop: its state is {state(pid)}")
        time.sleep(0.001)


def has_ended(pid: int) -> bool:
    """Returns whether a process has ended, reaped or not."""
    try:
        return state(pid) == "Z"
    except OSError:
        return True


def state(pid: int) -> str:
    """Returns the state of a process as `/proc` has it: T for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
