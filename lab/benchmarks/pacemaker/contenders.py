"""The three servers, each restarted for every measurement, on one core."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from kazoo.client import KazooClient

from lab.benchmarks.pacemaker.wire import SESSION_MILLIS, path_of
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.runtime.processes.kept_program import KeptProcess
from storm_on_spark.runtime.processes.server import HOST, free_ports, last_words
from storm_on_spark.spark.session.jvm.java import require_java

ROOT = Path(__file__).parents[3]
_BUILD = ROOT / "build" / "pacemaker"
STORM = "2.8.3"
_HEAP = "-Xmx1024m"
"""Storm's default (`pacemaker.childopts`); for ZooKeeper, too, whose own is as much."""
_COMPILE = "-XX:TieredStopAtLevel=4"
"""Java's default; this project's ZooKeeper servers start often and otherwise compile less."""
SURVIVOR = "ours, last of three"
_SESSIONS = f"maxSessionTimeout={SESSION_MILLIS}"
"""Sessions outlast the time in which thousands of them are made: nobody writes meanwhile."""
_START_SECS = 60.0
_CREATE_AT_ONCE = 200

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>pacemaker</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.storm</groupId><artifactId>storm-server</artifactId><version>{STORM}</version></dependency>
  </dependencies>
</project>
"""


@dataclass(frozen=True)
class Running:
    """A contender that serves."""

    name: str
    protocol: str
    addresses: tuple[tuple[str, int], ...]
    pids: tuple[int, ...]
    way: str
    """How a Nimbus reads it: see `nimbus`."""
    victims: tuple[int, ...] = ()
    """Processes of servers that are killed under load; `pids` are those that remain."""

    def kill(self) -> None:
        """Kills the victims."""
        for pid in self.victims:
            os.kill(pid, signal.SIGKILL)

    def cpu(self) -> float:
        """Returns the seconds of CPU that it has used so far."""
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in self.pids)

    def resident(self) -> int:
        """Returns its resident bytes."""
        return sum(psutil.Process(pid).memory_info().rss for pid in self.pids)


@contextlib.contextmanager
def _process(command: list[str], core: int, port: int, **environment: str) -> Iterator[int]:
    with temporary_folder("pacemaker-") as folder:
        pinned = ["taskset", "-c", str(core), *command]
        process = KeptProcess("pacemaker", pinned, folder, folder / "out", {**os.environ, **environment})
        try:
            if not process.serves(lambda: _listens(port), _START_SECS):
                raise SetupError(f"it does not start: {last_words(process.out)}")
            yield _serving(process.leader, port)
        finally:
            process.end()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False


def _serving(pid: int, port: int) -> int:
    """Returns the server's own process: it may have been started by a wrapper that stays."""
    children = psutil.Process(pid).children()
    return _serving(children[0].pid, port) if children else pid


@contextlib.contextmanager
def ours(core: int, workers: int) -> Iterator[Running]:
    """Starts `storm-spark pacemaker`."""
    with _one_of_ours(core) as (port, pid):
        yield Running("ours", "pacemaker", ((HOST, port),), (pid,), "ours")


@contextlib.contextmanager
def survivor(core: int, workers: int) -> Iterator[Running]:
    """Starts three of this project's; two are killed under load, and the last one then carries it alone."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(_one_of_ours(core)) for _ in range(3)]
        (_, last), *others = servers
        addresses = tuple((HOST, port) for port, _ in servers)
        yield Running(SURVIVOR, "pacemaker", addresses, (last,), "ours", tuple(pid for _, pid in others))


@contextlib.contextmanager
def _one_of_ours(core: int) -> Iterator[tuple[int, int]]:
    """Yields its port and its process."""
    (port,) = free_ports(1)
    most = {"pacemaker.max.connections": 20_000, "pacemaker.max.connections.per.address": 20_000}
    given = [f"pacemaker.port={port}", *(f"{key}={value}" for key, value in most.items())]
    options = [part for pair in given for part in ("-c", pair)]
    command = [sys.executable, "-m", "storm_on_spark.cli", "pacemaker", *options]
    with _process(command, core, port, PYTHONPATH=os.environ.get("PYTHONPATH", str(ROOT))) as pid:
        yield port, pid


@contextlib.contextmanager
def storm(core: int, workers: int) -> Iterator[Running]:
    """Starts Storm's Pacemaker."""
    (port,) = free_ports(1)
    command = [
        str(require_java().home / "bin" / "java"),
        _HEAP,
        f"-Dstorm.options=pacemaker.port={port}",
        "-Dlog4j2.level=WARN",
        "-cp",
        _class_path(),
        "org.apache.storm.pacemaker.Pacemaker",
    ]
    with _process(command, core, port) as pid:
        yield Running("Storm", "pacemaker", ((HOST, port),), (pid,), "storm")


@contextlib.contextmanager
def zookeeper(core: int, workers: int) -> Iterator[Running]:
    """Starts three ZooKeeper servers, with a node for each worker."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # children inherit it
    try:
        ensemble = ZooKeeperEnsemble(3, config=[_SESSIONS], jvm_options=[_HEAP, _COMPILE])
        ensemble.start()
    finally:
        os.sched_setaffinity(0, before)
    with contextlib.closing(ensemble):
        client = KazooClient(ensemble.connect_string, timeout=60)
        client.start(60)
        folders = dict.fromkeys(path_of(worker).rpartition("/")[0] for worker in range(workers))
        client.ensure_path("/workerbeats")
        for paths in (list(folders), [path_of(worker) for worker in range(workers)]):
            for start in range(0, len(paths), _CREATE_AT_ONCE):
                transaction = client.transaction()
                for path in paths[start : start + _CREATE_AT_ONCE]:
                    transaction.create(path)
                transaction.commit()
        client.stop()
        client.close()
        addresses = tuple((HOST, server.port) for server in ensemble.servers)
        pids = tuple(server.pid for server in ensemble.servers if server.pid is not None)
        yield Running("ZooKeeper", "zookeeper", addresses, pids, "zookeeper")


CONTENDERS = {"ours": ours, "storm": storm, "zookeeper": zookeeper, "survivor": survivor}


def _class_path() -> str:
    """Returns the jars of Storm's server, which Maven fetches once."""
    _BUILD.mkdir(parents=True, exist_ok=True)
    file = _BUILD / f"storm-server-{STORM}.classpath"
    if not file.exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise SetupError("Storm's Pacemaker comes from Maven, and there is no mvn")
        (_BUILD / "pom.xml").write_text(_POM)
        command = [maven, "-q", "-B", "-f", str(_BUILD / "pom.xml"), "dependency:build-classpath"]
        subprocess.run([*command, f"-Dmdep.outputFile={file}"], check=True, timeout=600)
    return file.read_text().strip()
