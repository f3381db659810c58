"""Live processes on two machines beside the driver's: one is lost, a cable is cut, a machine vanishes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from lab.faults.run import Run
from lab.suite import ROOT
from lab.suite.processes import wait_for
from lab.suite.scenario import ScenarioError
from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.testing import kill_one
from storm_on_spark.testing.faults.machines import SOON_GIVEN_UP, Network, why_no_network
from storm_on_spark.testing.faults.processes import live_processes_on_executors

CONF: Mapping[str, Any] = {
    "topology.profile": "realtime",
    # One beside the driver, and one on each machine.
    "topology.workers": 3,
    "spark.cores.max": "8",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    **SOON_GIVEN_UP,
}
CUT_SECS = 13.0
"""Longer than a live process may be silent, and shorter than Spark waits for a machine."""
_LIVE_SECS = 90.0
"""Longest time until a lost live process has been replaced."""

why_not = why_no_network


def live_process(run: Run, times: int) -> None:
    """Kills the live process on one of the machines."""
    machines = Machines(run)
    run.start()
    for _ in run.moments(times):
        host = machines.live()
        at = time.monotonic_ns()
        pid = kill_one(lambda: machines.live_processes(host), "live process")  # noqa: B023
        run.injected(f"SIGKILL of live process {pid} on {host}", "the process is gone", at)


def network(run: Run, times: int) -> None:
    """Cuts one machine off from the others; its processes survive, and hear of nothing."""
    machines = Machines(run)
    run.start()
    for _ in run.moments(times, CUT_SECS):
        host = machines.live()
        before = machines.live_processes(host)
        with machines.network.cut_off(host):
            time.sleep(CUT_SECS)
            executors = machines.cluster.executors(host)
        over = time.monotonic_ns()
        if not executors:
            raise ScenarioError(f"nothing executes on {host}, which was only cut off")
        injection = run.injected(f"{host} cut off for {CUT_SECS:.0f} s", "", over)
        wait_for(lambda: not set(before) & set(machines.live_processes(host)), "the cut is noticed", _LIVE_SECS)  # noqa: B023
        injection.proof = f"its executor {executors} survived; live process {before} was given up"


def machine(run: Run, times: int) -> None:
    """Makes a machine vanish with all its processes, so that no connection is closed; another replaces it later."""
    machines = Machines(run)
    run.start()
    for _ in run.moments(times):
        host = machines.live()
        before = machines.live_processes(host)
        at = time.monotonic_ns()
        with machines.network.cut_off(host):
            machines.cluster.kill_worker(host)
            run.injected(f"{host} lost", f"with its executor and live process {before}; nothing was sent", at)
        machines.cluster.start_worker(host)


class Machines:
    """Two machines with a worker of Spark each, for as long as a run lasts."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.network = run.cleanup.enter_context(Network())
        temporary = run.folder / "machines-tmp"
        temporary.mkdir()
        self.cluster = run.cleanup.enter_context(
            StandaloneCluster(
                run.folder / "spark",
                cores=4,
                environment={"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
                machine=self.network.command,
                network=self.network.network,
            )
        )
        # A topology has no more live processes than a bolt has tasks.
        run.tasks = int(run.conf["topology.workers"])
        run.master = self.cluster.master
        run.conf = {**self.cluster.conf, **run.conf}
        run.environment = {**run.environment, **self.cluster.environment}

    def live_processes(self, host: str) -> list[int]:
        """Returns the live processes on a machine."""
        return live_processes_on_executors(self.cluster.workers[host].leader)

    def live(self) -> str:
        """Waits until all live processes are there; returns a machine that has one, by chance."""
        wanted = int(self._run.conf["topology.workers"]) - 1

        def complete() -> bool:
            return sum(len(self.live_processes(host)) for host in self.network.machines) == wanted

        wait_for(complete, f"{wanted} live processes on the machines", _LIVE_SECS)
        return self._run.shuffled(filter(self.live_processes, self.network.machines))[0]
