"""Processes die by SIGKILL."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lab.faults.run import Run
from lab.suite.scenario import ScenarioError
from storm_on_spark.testing import descendants, executors, kill_one, python_workers, spout_hosts

_CHANGES = ("throughput", "latency", "realtime", "latency", "throughput", "realtime")
"""The profiles that follow on real time, so that each follows once on each other one."""


def nothing(run: Run, times: int) -> None:
    """No fault: the figures without one."""
    run.start()


def python_worker(run: Run, times: int) -> None:
    """Kills a Python worker, whatever it is doing."""
    run.start()
    for _ in run.moments(times):
        _kill_python_worker(run)


def spout_host(run: Run, times: int) -> None:
    """Kills one of the two spout hosts."""
    run.start()
    for _ in run.moments(times):
        _kill_spout_host(run)


def executor(run: Run, times: int) -> None:
    """Kills one of the two executors, with its Python workers."""
    run.start()
    for _ in run.moments(times):
        _kill(run, executors, "executor")


def driver(run: Run, times: int) -> None:
    """Kills the driver and starts it again."""
    run.start()
    for _ in run.moments(times):
        _kill_driver(run)


def change_of_profile(run: Run, times: int) -> None:
    """Kills the driver, and starts it again with another profile, until each has followed on each other one."""
    run.start()
    for number in run.moments(max(times, len(_CHANGES))):
        profile = _CHANGES[number % len(_CHANGES)]
        before, run.conf = run.conf["topology.profile"], {**run.conf, "topology.profile": profile}
        _kill_driver(run, f", in profile {before}, started again in {profile}")


def driver_in_recovery(run: Run, times: int) -> None:
    """Kills the driver, and the next one before it has achieved anything."""
    run.start()
    for number in run.moments(times):
        at = time.monotonic_ns()
        run.kill_driver()
        while True:
            run.start()
            # The important moments: Spark starts, the spouts are opened, the last micro-batch runs again.
            event, most = (("python", 4.0), ("session", 2.0), ("submitted", 1.0))[number % 3]
            run.wait_for(event)
            time.sleep(run.rng.uniform(0, most))
            run.kill_driver()
            if not run.has_recovered_since(at):
                break
            at = time.monotonic_ns()  # too late: this was a kill of a driver like any other
        # What counts is the second fault.
        at = time.monotonic_ns()
        run.restart()
        run.injected(f'SIGKILL of a driver after "{event}"', "ended by signal 9; nothing new was acked before", at)


def driver_before_commit(run: Run, times: int) -> None:
    """Makes the driver die after the sink has reported the outcomes and before Spark has committed the micro-batch."""
    run.start()
    for _ in run.moments(times):
        _kill_before_commit(run)


def jvm_or_source(run: Run, times: int) -> None:
    """Kills the driver's JVM, or the process in which Spark asks for offsets; the topology ends with a reason."""
    victims = run.shuffled([(_jvms, "the JVM"), (_sources, "the source's process")])
    run.start()
    for number in run.moments(times):
        find, what = victims[number % len(victims)]
        at = time.monotonic_ns()
        pid = kill_one(lambda find=find: find(run.pid), what)  # type: ignore[misc]
        reason = run.refused()
        run.restart()
        run.injected(f"SIGKILL of {what} ({pid})", f"the process is gone; the topology ended with: {reason}", at)


def mixed(run: Run, times: int) -> None:
    """Kills a worker, a host and a driver in turn, each at its moment, in random order."""
    run.start()
    faults = [_kill_python_worker, _kill_spout_host, _kill_before_commit] * times
    run.rng.shuffle(faults)
    for number in run.moments(len(faults)):
        faults[number](run)


def live_process(run: Run, times: int) -> None:
    """Kills the live process that leads, and one that follows, in turn."""
    roles = run.shuffled(["process", "member"])
    run.start()
    for number in run.moments(times):
        role = roles[number % len(roles)]
        _kill(run, lambda _, role=role: run.live_processes(role), "live process")  # type: ignore[misc]


def _kill_python_worker(run: Run) -> None:
    _kill(run, python_workers, "Python worker")


def _kill_spout_host(run: Run) -> None:
    before = spout_hosts(run.pid)
    pid = _kill(run, spout_hosts, "spout host")
    after = spout_hosts(run.pid)
    if len(after) != len(before) or pid in after:
        raise ScenarioError(f"spout hosts before the kill of {pid}: {before}, after recovery: {after}")


def _kill_driver(run: Run, how: str = "") -> None:
    at, pid = time.monotonic_ns(), run.pid
    run.kill_driver()
    run.restart()
    run.injected(f"SIGKILL of driver {pid}{how}", "ended by signal 9", at)


def _kill_before_commit(run: Run) -> None:
    pid = run.pid
    run.trigger.touch()
    run.died()
    event = run.event("delivered")
    if event is None:
        raise ScenarioError("the driver died, but not behind the sink")
    batch = event["batch"]
    if run.has_committed(batch):
        raise ScenarioError(f"micro-batch {batch} was committed before the driver died")
    run.restart()
    run.injected(
        f"SIGKILL of driver {pid} behind the sink", f"ended by signal 9; batch {batch} had no commit", event["time"]
    )


def _jvms(root: int) -> list[int]:
    return [process.pid for process in descendants(root) if Path(process.command[0]).name == "java"]


def _sources(root: int) -> list[int]:
    mark = "pyspark.sql.streaming.python_streaming_source_runner"
    return [process.pid for process in descendants(root) if mark in process.command]


def _kill(run: Run, find: Callable[[int], list[int]], what: str) -> int:
    at = time.monotonic_ns()
    pid = kill_one(lambda: run.shuffled(find(run.pid)), what)
    run.injected(f"SIGKILL of {what} {pid}", "the process is gone", at)
    return pid
