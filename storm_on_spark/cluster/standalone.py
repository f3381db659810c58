"""A real Spark cluster for development and tests: a master and workers of Spark's standalone mode, all on this host.

Each worker has its own loopback address and so counts as another machine to Spark. Executors run in the worker's
own folder, as they would on another machine.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.security.user_token import make_secret_file
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.runtime.processes.kept_program import KeptProcess
from storm_on_spark.runtime.processes.server import last_words
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.jvm.home import linked_home
from storm_on_spark.spark.session.jvm.java import require_java
from storm_on_spark.spark.session.settings.required import required_settings

_READY_SECS: Final = 60.0
_MASTER: Final = re.compile(r"Starting Spark master at (spark://[\d.]+:\d+)")
_WORKER: Final = re.compile("(Successfully registered with master)")
_FILTER: Final = "org.apache.spark.ui.JWSFilter"
_PROPERTIES: Final = "daemons.conf"
_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class StandaloneCluster(Service):
    """Spark's standalone cluster on this host, on free ports.

    Args:
        folder: for logs and for the working directories of executors; made.
        workers: how many workers; worker *i* has the address `127.0.0.(2 + i)`, where the network is `127.0.0`.
        cores: how many task slots each worker has.
        memory: of each worker, for its executors, as Spark writes it.
        started: called with the process id of each master and worker, which leads a session.
        environment: more variables for them.
        machine: returns what stands before a worker's command, by the worker's address, such as `unshare --mount`; it
            must end by replacing itself with that command.
        network: the first three parts of all addresses. Master and driver have `.1` there.

    Example:
        >>> with StandaloneCluster(folder) as cluster:                          # doctest: +SKIP
        ...     os.environ.update(cluster.environment)
        ...     spark = local_session(cluster.master, cluster.conf)
    """

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        cores: int = 2,
        memory: str = "2g",
        *,
        started: Callable[[int], object] = lambda pid: None,
        environment: Mapping[str, str] | None = None,
        machine: Callable[[str], Sequence[str]] = lambda host: (),
        network: str = "127.0.0",
    ) -> None:
        self._folder = folder
        self._memory = memory
        self._started = started
        self._more = dict(environment or {})
        self._machine = machine
        self._network = network
        self._port = 0
        self._home: Path | None = None
        self._cores = cores
        self._count = workers
        self._master: KeptProcess | None = None
        self._secret = secrets.token_hex(32)
        self.workers: dict[str, KeptProcess] = {}
        """The workers' processes, by address."""
        self.master = ""
        """The address for sessions, once it has been started."""

    @property
    def conf(self) -> dict[str, str]:
        """Settings for sessions on it."""
        bare_fs = jars.fetch(jars.BARE_LOCAL_FS)
        settings = required_settings(bare_local_fs=bare_fs is not None) | {
            "spark.driver.host": f"{self._network}.1",
            "spark.driver.bindAddress": f"{self._network}.1",
            "spark.executor.memory": "512m",
            **self.secret,
            # What doesn't answer on this host is gone: Spark would try three times, five seconds apart.
            "spark.shuffle.io.retryWait": "500ms",
            "spark.executor.extraJavaOptions": _OPTIONS,
        }
        if bare_fs is not None:
            paths = os.pathsep.join(map(str, bare_fs))
            settings |= {"spark.driver.extraClassPath": paths, "spark.executor.extraClassPath": paths}
        return settings

    @property
    def secret(self) -> dict[str, str]:
        """Settings by which an application is let in; without, every user of this host could run code as this one."""
        return {"spark.authenticate": "true", "spark.authenticate.secret": self._secret}

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the process of a driver: workers and executors must run the same Python as this process."""
        return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}

    def start(self) -> None:
        """Returns when all workers have registered with the master.

        Raises:
            SetupError: there is no Java, or it does not start.
        """
        self.launch()
        for host, process in self.workers.items():
            self._wait_for(process, host, _WORKER)

    def launch(self) -> None:
        """Starts all, and returns when the master runs; `ready` says when the workers do.

        Raises:
            SetupError: there is no Java, or the master does not start.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._home = linked_home(self._folder)
        # Pages show what applications print: they ask for a token now, which does not exist. The other way to submit
        # applications asks for no secret.
        lines = (
            "spark.master.rest.enabled false",
            f"spark.ui.filters {_FILTER}",
            f"spark.{_FILTER}.param.secretKey {secrets.token_urlsafe(48)}",
        )
        make_secret_file(self._folder / _PROPERTIES, "\n".join(lines))
        self._start_master()
        for number in range(self._count):
            self.start_worker(f"{self._network}.{2 + number}", wait=False)

    def ready(self) -> bool:
        """Returns whether all workers have registered with the master.

        Raises:
            SetupError: one has ended.
        """
        found = True
        for host, process in self.workers.items():
            if process.pid is None:
                raise SetupError(f"Spark's worker {host} has ended: {last_words(process.out, lines=1)}")
            found = found and self._said(host, _WORKER) is not None
        return found

    def look_after(self) -> list[str]:
        """Starts the master and the workers again that have ended; returns a sentence for each."""
        said = []
        if self._master is not None and self._master.pid is None:
            said.append("Spark's master has ended; starting it again")
            self._master.end()
            self._start_master()
        for host, process in list(self.workers.items()):
            if process.pid is None:
                said.append(f"Spark's worker {host} has ended; starting it again")
                self.kill_worker(host)
                self.start_worker(host, wait=False)
        return said

    @property
    def processes(self) -> dict[str, int]:
        """Process ids of the master and the workers, by name."""
        found = {} if self._master is None else {"spark-master": self._master.leader}
        return found | {f"spark-worker-{host}": process.leader for host, process in self.workers.items()}

    def _start_master(self) -> None:
        # At its port of before: workers and drivers know no other.
        port, host = str(self._port), f"{self._network}.1"
        command = ["org.apache.spark.deploy.master.Master", "--host", host, "--port", port, "--webui-port", "0"]
        self._master = self._run("master", host, command)
        self.master = self._wait_for(self._master, "master", _MASTER)
        self._port = int(self.master.rpartition(":")[2])

    def start_worker(self, host: str, *, wait: bool = True) -> None:
        """Starts a worker on an address; one that was there must have been killed.

        Raises:
            SetupError: it does not start.
        """
        (self._folder / host).mkdir(exist_ok=True)
        options = ["--host", host, "--cores", str(self._cores), "--memory", self._memory, "--webui-port", "0"]
        folder = ["--work-dir", str(self._folder / host)]
        command = ["org.apache.spark.deploy.worker.Worker", *options, *folder, self.master]
        self.workers[host] = self._run(host, host, command, self._machine(host))
        if wait:
            self._wait_for(self.workers[host], host, _WORKER)

    def kill_worker(self, host: str) -> None:
        """Kills a worker and its executors by SIGKILL at once, as when the machine dies."""
        self.workers.pop(host).end()

    def executors(self, host: str) -> list[int]:
        """Returns the process ids of the executors' JVMs on a worker."""
        found = []
        for pid in session_members(self.workers[host].leader):
            try:
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in arguments:
                found.append(pid)
        return found

    def close(self) -> None:
        """Kills all that is left of it."""
        for process in [*self.workers.values(), *filter(None, [self._master])]:
            process.end()
        self.workers, self._master = {}, None

    def _run(self, name: str, host: str, command: list[str], before: Sequence[str] = ()) -> KeptProcess:
        java, home = require_java(), self._home
        properties = ("--properties-file", str(self._folder / _PROPERTIES))
        assert home is not None
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self._folder / f"{name}-local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_OPTIONS} -Dspark.authenticate=true",
            # Spark's own name for it. Others can't read an environment, as they can a command line.
            "_SPARK_AUTH_SECRET": self._secret,
            "PYSPARK_UDS_MODE": "true",
            **self._more,
        }
        # Executors belong to the session, so all of a worker can be killed at once.
        program = [*before, str(home / "bin" / "spark-class"), *command, *properties]
        log = self._folder / f"{name}.log"
        log.unlink(missing_ok=True)
        process = KeptProcess(f"spark-{name}", program, self._folder, log, environment)
        self._started(process.leader)
        return process

    def _wait_for(self, process: KeptProcess, name: str, wanted: re.Pattern[str]) -> str:
        process.serves(lambda: self._said(name, wanted) is not None, _READY_SECS)
        found = self._said(name, wanted)
        if found is None:
            words = last_words(process.out, lines=1)
            raise SetupError(f"Spark's standalone cluster does not start: {words}; see {process.out}")
        return found

    def _said(self, name: str, wanted: re.Pattern[str]) -> str | None:
        try:
            found = wanted.search((self._folder / f"{name}.log").read_text(errors="replace"))
        except FileNotFoundError:
            return None
        return None if found is None else found[1]
