"""Real time on several machines: what is lost, stopped or cut off costs no message and no state.

Network namespaces on a bridge stand for machines: Spark's workers are in one each, and the driver is outside. What they
have in common is the directory of the checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import environment
from waiting import eventually

from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.runtime.processes.sessions import kill_session
from storm_on_spark.testing.faults.machines import SOON_GIVEN_UP, Network, why_no_network
from storm_on_spark.testing.faults.processes import descendants, live_processes_on_executors

HERE = Path(__file__).parent
KEYS = 30
PATIENCE_SECS = 240

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    if (reason := why_no_network()) is not None:
        pytest.skip(reason)
    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, network: Network) -> Iterator[StandaloneCluster]:
    folder = tmp_path_factory.mktemp("elsewhere") / "spark"
    with StandaloneCluster(folder, cores=4, machine=network.command, network=network.network) as cluster:
        yield cluster


class Driver:
    """One run of the topology after another, with the same checkpoint."""

    def __init__(self, folder: Path, temporary: Path, cluster: StandaloneCluster) -> None:
        self._folder, self._temporary, self._cluster = folder, temporary, cluster
        self._end, self._out, self._log = folder / "end", folder / "driver.out", folder / "driver.log"
        spark = {
            **cluster.conf,
            "spark.cores.max": "8",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            **SOON_GIVEN_UP,
        }
        settings = {"end": str(self._end), "checkpoint": str(folder / "checkpoint"), "conf": {}}
        (folder / "settings.json").write_text(json.dumps({**settings, "master": cluster.master, "spark": spark}))
        self.start()

    def start(self) -> None:
        with self._out.open("wb") as out, self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "elsewhere.py"), str(self._folder / "settings.json")],
                # Sockets of the driver's machine are where others don't look.
                env={**environment(self._temporary), **self._cluster.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.read_text().splitlines(keepends=True) if line.endswith("\n")]

    @property
    def log(self) -> str:
        return self._log.read_text()

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Returns the first that is said from now on and for which a condition holds."""
        begin = len(self.said)
        deadline = time.monotonic() + PATIENCE_SECS
        while True:
            if found := next(filter(holds, self.said[begin:]), None):
                return found
            assert self.process.poll() is None, self.log[-5000:]
            assert time.monotonic() < deadline, (self.said[-3:], self.log[-5000:])
            time.sleep(0.1)

    def until_saved(self) -> None:
        """Returns when two more micro-batches are committed, of which the second began after the call."""

        def committed() -> int:
            return max(
                (int(path.name) for path in (self._folder / "checkpoint" / "commits").glob("[0-9]*")), default=-1
            )

        before = committed()
        eventually(lambda: committed() >= before + 2)

    def until_live(self) -> None:
        """Returns when messages are acked in real time, and some more."""
        acked = self.until(lambda said: said["how"] == "real time")["acked"]
        self.until(lambda said: said["how"] == "real time" and said["acked"] > acked + 500)

    def finish(self) -> dict[str, Any]:
        self._end.touch()
        assert self.process.wait(PATIENCE_SECS) == 0, self.log[-5000:]
        return self.said[-1]

    def close(self) -> None:
        kill_session(self.process.pid)
        self.process.wait()


@pytest.fixture
def driver(tmp_path: Path, cluster: StandaloneCluster) -> Iterator[Driver]:
    # A live process needs a short path for its socket.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as temporary:
        driver = Driver(tmp_path, Path(temporary), cluster)
        try:
            yield driver
        finally:
            driver.close()


def members(host: str, cluster: StandaloneCluster) -> list[int]:
    """The further live processes on a machine."""
    return live_processes_on_executors(cluster.workers[host].leader)


def leader(driver: Driver) -> int:
    """The first live process, which is beside the driver."""
    mark = "storm_on_spark.runtime.live.processes.process"
    (found,) = (process.pid for process in descendants(driver.process.pid) if mark in process.command)
    return found


def is_exact(found: dict[str, Any]) -> int:
    """Checks that each number was counted once; returns how many there were."""
    assert (found["status"], found["failed"], found["pending"]) == ("COMPLETED", 0, 0)
    count = sum(found["counts"])
    assert found["counts"] == [len(range(rest, count, KEYS)) for rest in range(KEYS)]
    assert found["sums"] == [sum(range(rest, count, KEYS)) for rest in range(KEYS)]
    return count


def test_what_is_lost_stopped_or_cut_off_costs_nothing(
    driver: Driver, cluster: StandaloneCluster, network: Network
) -> None:
    driver.until_live()
    assert [len(members(host, cluster)) for host in network.machines] == [1, 1]
    driver.until_saved()

    # A process.
    os.kill(members(network.machines[0], cluster)[0], signal.SIGKILL)
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A stopped process, which is ended.
    os.kill(members(network.machines[1], cluster)[0], signal.SIGSTOP)
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # The first of them, which is beside the driver.
    os.kill(leader(driver), signal.SIGKILL)
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A cable, for longer than a live process waits and less than Spark does.
    with network.cut_off(network.machines[0]):
        driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A machine.
    cluster.kill_worker(network.machines[1])
    try:
        driver.until(lambda said: said["how"] == "micro-batches")
        driver.until_live()
        assert len(members(network.machines[0], cluster)) == 2, "the other one has both"
        found = driver.finish()
    finally:
        cluster.start_worker(network.machines[1])
    assert is_exact(found) == found["acked"]
    assert len(found["machines"]) == 3, "all machines have worked"


def test_a_driver_that_is_killed_or_interrupted_leaves_nothing_and_goes_on(
    driver: Driver, cluster: StandaloneCluster
) -> None:
    driver.until_live()
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    eventually(lambda: not any(members(host, cluster) for host in cluster.workers), timeout=60)
    kill_session(driver.process.pid)

    driver.start()
    driver.until_live()
    os.killpg(driver.process.pid, signal.SIGINT)
    assert driver.process.wait(60) == 130
    eventually(lambda: not any(members(host, cluster) for host in cluster.workers), timeout=60)
    assert "Traceback" not in driver.log

    driver.start()
    driver.until_live()
    found = driver.finish()
    assert is_exact(found) > found["acked"] > 0
