"""Real time on several machines: what is lost, stopped or cut off costs no message and no state.

Network namespaces on a bridge stand for machines: Spark's workers are in one each, and the driver is outside. What they
have in common is the directory of the checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import environment
from waiting import eventually

from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.runtime.processes.sessions import kill_session

HERE = Path(__file__).parent
KEYS = 30
PATIENCE_SECS = 240

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Network:
    """Two machines, and the driver's address on a bridge to them. Several may exist, in different processes."""

    def __init__(self) -> None:
        number = os.getpid() % 250
        self.network = f"10.91.{number}"
        self.machines = (f"{self.network}.2", f"{self.network}.3")
        self._bridge = f"storm-br{number}"

    def __enter__(self) -> Network:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            pytest.skip("needs root and iproute2, for network namespaces")
        self.close()  # a run before this one may have been killed
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self.close()
            pytest.skip(f"needs network namespaces: {error.stderr.decode().strip()}")
        return self

    def _make(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("addr", "add", f"{self.network}.1/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for host in self.machines:
            name, end = self.namespace(host), self.cable(host)
            ip("netns", "add", name)
            ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", end, "master", self._bridge, "up")
            ip("-n", name, "addr", "add", f"{host}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                ip("-n", name, "link", "set", device, "up")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for host in self.machines:
            ip("netns", "del", self.namespace(host), check=False)
            ip("link", "del", self.cable(host), check=False)
        ip("link", "del", self._bridge, check=False)

    def command(self, host: str) -> tuple[str, ...]:
        return str(shutil.which("ip")), "netns", "exec", self.namespace(host)

    @contextlib.contextmanager
    def cut_off(self, host: str) -> Iterator[None]:
        """Unplugs a machine for as long as the block lasts."""
        ip("link", "set", self.cable(host), "down")
        try:
            yield
        finally:
            ip("link", "set", self.cable(host), "up")

    def namespace(self, host: str) -> str:
        return f"{self._bridge}-{host.rpartition('.')[2]}"

    def cable(self, host: str) -> str:
        return f"{self._bridge}v{host.rpartition('.')[2]}"


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
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
            # Spark gives a silent machine up after these, which is two minutes otherwise.
            "spark.network.timeout": "20s",
            "spark.executor.heartbeatInterval": "4s",
            "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
            "spark.network.timeoutInterval": "5s",
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

    def until_live(self) -> None:
        """Returns when messages are acked in real time: some more, so the state store has heard of it."""
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


def children(of: int, module: str) -> list[psutil.Process]:
    """The processes below another one that execute a module; some may end meanwhile."""
    found = []
    for child in psutil.Process(of).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if f"storm_on_spark.runtime.live.{module}" in child.cmdline():
                found.append(child)
    return found


def members(host: str, cluster: StandaloneCluster) -> list[psutil.Process]:
    """The further live processes on a machine."""
    return children(cluster.workers[host].leader, "remote.process")


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

    # A process.
    members(network.machines[0], cluster)[0].kill()
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A stopped process, which is ended.
    members(network.machines[1], cluster)[0].suspend()
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # The first of them, which is beside the driver.
    (leader,) = children(driver.process.pid, "processes.process")
    leader.kill()
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
