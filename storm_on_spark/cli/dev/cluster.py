"""The processes of a `storm-spark dev`: one ZooKeeper, two Nimbuses, two supervisors; more if asked for.

Except for ZooKeeper, they run this command line's `nimbus`, `supervisor` and `pacemaker`. Everything listens on this
host only, requires a token, and keeps its files in one folder, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from storm_on_spark.api.config import validate_conf
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli.client.dev_document import DevRecord
from storm_on_spark.cli.client.dev_record import DevFile
from storm_on_spark.cli.dev.guard import MARK
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.security.user_token import make_secret_file
from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.plan.explain.words import counted
from storm_on_spark.runtime.processes.kept_program import KeptProcess
from storm_on_spark.runtime.processes.server import HOST, free_ports, last_words
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.xd.client import AdminClient

NIMBUSES: Final = 2
SUPERVISORS: Final = 2
_SLOTS: Final = 4
"""Of each supervisor."""
_SPARE_CORES: Final = 4
_SPARE_BYTES: Final = 15 << 30
_FIRST_SLOT: Final = 6700
_TOPOLOGY_CORES: Final = 2
"""Task slots that a topology gets from each Spark worker, in one executor."""
_WORKERS_CORES: Final = _TOPOLOGY_CORES * SUPERVISORS * _SLOTS
"""Task slots of each Spark worker (not processors): enough for a topology in every slot of the supervisors."""
_WORKERS_MEMORY: Final = "16g"
"""The memory that each worker may offer to executors: more than they use."""
_READY_SECS: Final = 60.0
_POLL_SECS: Final = 0.1
_END_SECS: Final = 20.0
"""Supervisors end their drivers first."""
_AGAIN_SECS: Final = 2.0
_AGAIN_MAX_SECS: Final = 60.0

Say = Callable[[str], object]


@dataclass
class Daemon:
    """A Nimbus, a supervisor or a Pacemaker."""

    name: str
    command: list[str]
    log: Path
    process: KeptProcess | None = None
    pause: float = _AGAIN_SECS
    """The pause before the next start."""
    again_at: float | None = None


@dataclass
class DevCluster:
    """A whole cluster. Use it in the main thread: it lives as long as that thread.

    Args:
        conf: more configuration of all daemons.
        say: receives progress messages.

    Example:
        >>> with DevCluster({}) as cluster:                                     # doctest: +SKIP
        ...     cluster.wait_ready()
        ...     cluster.watch()
    """

    conf: Mapping[str, Any]
    say: Say = lambda text: None
    stopping: Callable[[], bool] = lambda: False
    """Called often; once it returns true, everything that waits returns."""
    pacemakers: int = 0
    """The number of Pacemakers that keep heartbeats; without any, ZooKeeper does."""
    spark_workers: int = 0
    """The number of workers of a standalone Spark cluster for topologies; without any, they use local sessions."""
    xd_containers: int = 0
    """The number of containers of streams, with an admin; without any, there are no streams."""
    admin: str | None = None
    """URL of that admin."""
    spark_conf_file: str | None = None
    """The file with that Spark's secret."""
    daemons: list[Daemon] = field(default_factory=list)
    _patience: float = _END_SECS

    def __enter__(self) -> DevCluster:
        validate_conf(self.conf, "dev")
        with contextlib.ExitStack() as stack:
            self._file = DevFile.take()
            stack.callback(self._file.leave)
            self.say(f"Starting {self.parts} ...")
            self.folder = Path(tempfile.mkdtemp(prefix="storm-spark-dev-"))
            self.started_at = time.time()
            self.zookeeper = ZooKeeperServer(self.folder / "zookeeper")
            self._guard = stack.enter_context(self._guarded())
            self.spark = self._spark() if self.spark_workers else None
            stack.callback(self.stop)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._patience = 0.0
        self._stack.close()

    @property
    def parts(self) -> str:
        """The parts of the cluster, in words."""
        pacemakers = f"{counted(self.pacemakers, 'Pacemaker')}, " if self.pacemakers else ""
        spark = f", Spark with {counted(self.spark_workers, 'worker')}" if self.spark_workers else ""
        streams = f", an admin and {counted(self.xd_containers, 'container')} of streams" if self.xd_containers else ""
        return f"ZooKeeper, {pacemakers}{NIMBUSES} Nimbuses, {SUPERVISORS} supervisors{spark}{streams}"

    # Starting.

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[IO[bytes]]:
        """Yields the guard's input. When it is closed, the guard cleans up, and then this returns."""
        guard = subprocess.Popen(
            [
                *(sys.executable, "-m", "storm_on_spark.cli.dev.guard"),
                *(str(self.folder), str(self._file.path), str(self._file.descriptor)),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[self._file.descriptor],
            env=_environment(),
            start_new_session=True,
        )
        assert guard.stdin is not None
        try:
            yield guard.stdin
        finally:
            with contextlib.suppress(BrokenPipeError):
                guard.stdin.close()
            guard.wait()

    def _start(self) -> None:
        self.token_file = self._secret("token", secrets.token_hex(32))
        found = free_ports(NIMBUSES + self.pacemakers)
        ports, pacemakers = found[:NIMBUSES], found[NIMBUSES:]
        self.seeds = tuple(f"{HOST}:{port}" for port in ports)
        common = {
            "storm.zookeeper.servers": [HOST],
            "storm.zookeeper.port": self.zookeeper.port,
            "storm.zookeeper.session.timeout": 8000,
            "storm.zookeeper.connection.timeout": 30000,
            "storm.zookeeper.auth.scheme": "digest",
            "storm.zookeeper.auth.payload": f"storm:{secrets.token_hex(32)}",
            "storm.local.hostname": HOST,
            "nimbus.seeds": list(self.seeds),
            "nimbus.auth.token.file": str(self.token_file),
            "nimbus.supervisor.timeout.secs": 10,
            "supervisor.spare.drivers": spares(os.cpu_count() or 1, _memory()),
            **(self._heartbeats(pacemakers) if pacemakers else {}),
            **(self._sparks() if self.spark_workers else {}),
            **self.conf,
        }
        for number, port in enumerate(pacemakers, 1):
            self._add("pacemaker", number, {**common, "pacemaker.port": port})
        for number, port in enumerate(ports, 1):
            self._add("nimbus", number, {**common, "nimbus.thrift.port": port})
        for number in range(1, SUPERVISORS + 1):
            first = _FIRST_SLOT + (number - 1) * _SLOTS
            slots = {"supervisor.slots.ports": list(range(first, first + _SLOTS))}
            self._add("supervisor", number, {**slots, **common}, "--stop-drivers")
        if self.xd_containers:
            [port] = free_ports(1)
            self.admin = f"http://{HOST}:{port}"
            self._add("xd-admin", 1, common, "--port", str(port))
        for number in range(1, self.xd_containers + 1):
            self._add("xd-container", number, common)
        # First, because a ZooKeeper that is just starting accepts connections and may drop them silently.
        self._launch_zookeeper(wait=True)
        for daemon in self.daemons:
            self._launch(daemon)

    def _spark(self) -> StandaloneCluster:
        return StandaloneCluster(
            self.folder / "spark",
            self.spark_workers,
            _WORKERS_CORES,
            _WORKERS_MEMORY,
            started=self._tell_guard,
            environment=_environment(**{MARK: str(self.folder)}),
        )

    def _sparks(self) -> dict[str, Any]:
        """Starts Spark's master and workers, and returns the configuration with which drivers run topologies there."""
        assert self.spark is not None
        self.spark.launch()
        # As YAML for --conf, and as properties for spark-submit.
        lines = (f"{key}: {value}" for key, value in self.spark.secret.items())
        self.spark_conf_file = str(self._secret("spark.yaml", "\n".join(lines)))
        return {
            **self.spark.conf,
            "spark.master": self.spark.master,
            "spark.executor.cores": _TOPOLOGY_CORES,
            "spark.cores.max": _TOPOLOGY_CORES * self.spark_workers,
            # A spare driver would hold unused executors.
            "supervisor.spare.drivers": 0,
        }

    def _heartbeats(self, ports: list[int]) -> dict[str, Any]:
        """Returns the configuration with which Pacemakers keep heartbeats."""
        return {
            "storm.cluster.state.store": "org.apache.storm.cluster.PaceMakerStateStorageFactory",
            "pacemaker.servers": [f"{HOST}:{port}" for port in ports],
            "pacemaker.auth.method": "DIGEST",
            "pacemaker.auth.payload": f"storm:{secrets.token_hex(32)}",
        }

    def _add(self, kind: str, number: int, conf: dict[str, Any], *options: str) -> None:
        name = f"{kind}-{number}"
        home = self.folder / name
        home.mkdir(mode=0o700)
        file = self._secret(f"{name}/conf.yaml", json.dumps({"storm.local.dir": str(home), **conf}, indent=1))
        command = [sys.executable, "-m", "storm_on_spark.cli", kind, "--conf", str(file), *options]
        self.daemons.append(Daemon(name, command, home / "daemon.log"))

    def _secret(self, name: str, content: str) -> Path:
        path = self.folder / name
        make_secret_file(path, content)
        return path

    def _launch_zookeeper(self, *, wait: bool) -> None:
        self.zookeeper.start(wait=wait)
        self._tell_guard(self.zookeeper.pid)

    def _launch(self, daemon: Daemon) -> None:
        environment = self._daemons_environment()
        daemon.process = KeptProcess(daemon.name, daemon.command, self.folder, daemon.log, environment)
        daemon.again_at = None
        self._tell_guard(daemon.process.leader)

    def _daemons_environment(self) -> dict[str, str]:
        spark = {} if self.spark is None else self.spark.environment
        # Containers share the folder.
        return _environment(**{MARK: str(self.folder), "STORM_SPARK_XD_HOME": str(self.folder / "xd")}, **spark)

    def _tell_guard(self, pid: int | None) -> None:
        start = None if pid is None else started_at(pid)
        if start is not None:
            self._guard.write(f"{pid} {start or '-'}\n".encode())
            self._guard.flush()

    # Being up.

    def wait_ready(self) -> float:
        """Waits until all daemons are up and a Nimbus leads; returns how many seconds that took.

        From then on other commands find the cluster.

        Raises:
            SetupError: a daemon has ended, or it takes too long.
        """
        deadline = time.monotonic() + _READY_SECS
        with self.client() as client:
            while not self.stopping() and not (
                self._is_ready(client) and self._spark_is_ready() and self._streams_are_ready()
            ):
                for daemon in self.daemons:
                    if daemon.process is not None and daemon.process.pid is None:
                        raise SetupError(f"{daemon.name} has ended: {last_words(daemon.log, lines=1)}")
                if time.monotonic() > deadline:
                    raise SetupError(f"the cluster is not ready after {_READY_SECS:g} s; {self._why_not(client)}")
                time.sleep(_POLL_SECS)
        self._file.write(self.record)
        return time.time() - self.started_at

    @property
    def record(self) -> DevRecord:
        """The record for other commands."""
        return DevRecord(
            pid=os.getpid(),
            seeds=self.seeds,
            token_file=str(self.token_file),
            zookeeper=self.zookeeper.connect_string,
            folder=str(self.folder),
            admin=self.admin,
            started_at=self.started_at,
        )

    def client(self) -> NimbusClient:
        """Returns a client that doesn't retry."""
        conf = {"storm.nimbus.retry.times": 0, "nimbus.auth.token.file": str(self.token_file)}
        return NimbusClient(conf, seeds=self.seeds)

    def leader(self) -> str | None:
        """Returns the address of the Nimbus that leads."""
        with contextlib.suppress(ClusterError), self.client() as client:
            return next((f"{n['host']}:{n['port']}" for n in client.cluster()["nimbuses"] if n["is_leader"]), None)
        return None

    def watch(self) -> None:
        """Returns when `stopping` does; until then restarts daemons that have ended."""
        while not self.stopping():
            now = time.monotonic()
            for daemon in self.daemons:
                self._look_after(daemon, now)
            if self.zookeeper.pid is None:
                self.say("ZooKeeper has ended; restarting it")
                self._launch_zookeeper(wait=True)
            for sentence in [] if self.spark is None else self.spark.look_after():
                self.say(sentence)
            time.sleep(_POLL_SECS)

    def _look_after(self, daemon: Daemon, now: float) -> None:
        code = None if daemon.process is None else daemon.process.exit_code
        if code is None:
            return
        if daemon.again_at is None:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            self.say(f"{daemon.name} has ended ({how}); restarting it in {daemon.pause:g} s")
            daemon.again_at = now + daemon.pause
            daemon.pause = min(_AGAIN_MAX_SECS, 2 * daemon.pause)
        elif now >= daemon.again_at:
            self._launch(daemon)

    def _spark_is_ready(self) -> bool:
        return self.spark is None or self.spark.ready()

    def _streams_are_ready(self) -> bool:
        if self.admin is None:
            return True
        try:
            with AdminClient(self.admin, {"nimbus.auth.token.file": str(self.token_file)}) as client:
                return len(list(client.every("list_containers"))) == self.xd_containers
        except ClusterError:
            return False

    def _is_ready(self, client: NimbusClient) -> bool:
        try:
            summary = client.cluster()
        except ClusterError:
            return False
        return (
            len(summary["nimbuses"]) == NIMBUSES
            and summary["supervisors"] == SUPERVISORS
            and any(nimbus["is_leader"] for nimbus in summary["nimbuses"])
        )

    def _why_not(self, client: NimbusClient) -> str:
        try:
            summary = client.cluster()
        except ClusterError as error:
            return str(error)
        return f"{len(summary['nimbuses'])} Nimbuses and {summary['supervisors']} supervisors are up"

    # Ending.

    def stop(self) -> None:
        """Ends everything in order: supervisors with their drivers, and Nimbuses; then Spark; then ZooKeeper."""
        running = [daemon.process for daemon in self.daemons if daemon.process is not None]
        for process in running:
            process.send(signal.SIGTERM)
        deadline = time.monotonic() + self._patience
        for process in running:
            if not process.wait(max(0.0, deadline - time.monotonic())):
                process.end()
        if self.spark is not None:
            self.spark.close()
        self.zookeeper.close()


def spares(cores: int, memory: int) -> int:
    """Returns how many spare drivers each supervisor keeps by default.

    With one, a topology starts in seconds. It costs half a minute of a core, and a gigabyte. On a machine without spare
    cores or memory, the topology itself would have to wait.

    Args:
        cores: the machine's cores.
        memory: the machine's memory, in bytes.

    Example:
        >>> spares(2, 64 << 30), spares(8, 8 << 30), spares(8, 16 << 30)
        (0, 0, 1)
    """
    return int(cores >= _SPARE_CORES and memory >= _SPARE_BYTES)


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _environment(**more: str) -> dict[str, str]:
    """Returns the environment in which children find this package, even if it is not installed."""
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **more}
