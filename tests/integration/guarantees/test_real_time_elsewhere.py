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
NETWORK = "10.91.7"
MACHINES = (f"{NETWORK}.2", f"{NETWORK}.3")
BRIDGE = "storm-br"
IP = shutil.which("ip") or "ip"
KEYS = 30
PATIENCE_SECS = 240


def ip(*words: str, check: bool = True) -> None:
    subprocess.run([IP, *words], check=check, capture_output=not check)


def have_namespaces() -> bool:
    """Returns whether this process may make what the tests need."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    made = subprocess.run([IP, "link", "add", BRIDGE, "type", "bridge"], capture_output=True).returncode == 0
    if made:
        made = subprocess.run([IP, "netns", "add", f"{BRIDGE}-probe"], capture_output=True).returncode == 0
        ip("netns", "del", f"{BRIDGE}-probe", check=False)
        ip("link", "del", BRIDGE, check=False)
    return made


class Network:
    """The machines, and the driver's address on the bridge."""

    def __enter__(self) -> Network:
        self.close()  # a run before this one may have been killed
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for host in MACHINES:
            name, end = self.namespace(host), self.cable(host)
            ip("netns", "add", name)
            ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", end, "master", BRIDGE, "up")
            for words in (["addr", "add", f"{host}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
                ip("-n", name, *words)
            ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for host in MACHINES:
            ip("netns", "del", self.namespace(host), check=False)
            ip("link", "del", self.cable(host), check=False)
        ip("link", "del", BRIDGE, check=False)

    def command(self, host: str) -> tuple[str, ...]:
        return IP, "netns", "exec", self.namespace(host)

    @contextlib.contextmanager
    def cut_off(self, host: str) -> Iterator[None]:
        """Unplugs a machine for as long as the block lasts."""
        ip("link", "set", self.cable(host), "down")
        try:
            yield
        finally:
            ip("link", "set", self.cable(host), "up")

    def namespace(self, host: str) -> str:
        return f"{BRIDGE}-{host.rpartition('.')[2]}"

    def cable(self, host: str) -> str:
        return f"storm-v{host.rpartition('.')[2]}"


pytestmark = [
    pytest.mark.skipif(not have_namespaces(), reason="needs root and iproute2, for network namespaces and a bridge"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, network: Network) -> Iterator[StandaloneCluster]:
    folder = tmp_path_factory.mktemp("elsewhere") / "spark"
    with StandaloneCluster(folder, cores=4, machine=network.command, network=NETWORK) as cluster:
        yield cluster


class Driver:
    """One run of the topology after another, with the same checkpoint."""

    def __init__(self, folder: Path, cluster: StandaloneCluster) -> None:
        self._folder, self._cluster = folder, cluster
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
                env={**environment(self._folder / "tmp"), **self._cluster.environment},
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
    driver = Driver(tmp_path, cluster)
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
    assert [len(members(host, cluster)) for host in MACHINES] == [1, 1]

    # A process.
    members(MACHINES[0], cluster)[0].kill()
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A stopped process, which is ended.
    members(MACHINES[1], cluster)[0].suspend()
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # The first of them, which is beside the driver.
    (leader,) = children(driver.process.pid, "processes.process")
    leader.kill()
    driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A cable, for longer than a live process waits and less than Spark does.
    with network.cut_off(MACHINES[0]):
        driver.until(lambda said: said["how"] == "micro-batches")
    driver.until_live()

    # A machine.
    cluster.kill_worker(MACHINES[1])
    try:
        driver.until(lambda said: said["how"] == "micro-batches")
        driver.until_live()
        assert len(members(MACHINES[0], cluster)) == 2, "the other one has both"
        found = driver.finish()
    finally:
        cluster.start_worker(MACHINES[1])
    assert is_exact(found) == found["acked"]
    assert len(found["machines"]) == 3, "all machines have worked"


def test_a_driver_that_is_killed_or_interrupted_leaves_nothing_and_goes_on(
    driver: Driver, cluster: StandaloneCluster
) -> None:
    driver.until_live()
    os.kill(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    eventually(lambda: not any(members(host, cluster) for host in MACHINES), timeout=60)
    kill_session(driver.process.pid)

    driver.start()
    driver.until_live()
    os.killpg(driver.process.pid, signal.SIGINT)
    assert driver.process.wait(60) == 130
    eventually(lambda: not any(members(host, cluster) for host in MACHINES), timeout=60)
    assert "Traceback" not in driver.log

    driver.start()
    driver.until_live()
    found = driver.finish()
    assert is_exact(found) > found["acked"] > 0
