"""Real ZooKeeper servers on this machine, for development and tests: one, or an ensemble.

They are reachable from this machine only, keep their data in their own folder, and end with the process that
started them, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.closing import Service
from storm_on_spark.runtime.processes.ending.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.server import HOST, Server, free_ports, java_command
from storm_on_spark.spark.session.jvm.java import require_java

_STANDALONE: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_QUORUM: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JARS: Final = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "netty-*.jar",
)
"""What a server needs; a class path of all of pyspark's jars takes twice as long to start."""


class ZooKeeperServer(Server):
    """One ZooKeeper server, in its own process.

    Args:
        data_dir: where its data is kept; None for a temporary folder that goes when it is closed.
        port: for clients; 0 for a free one. It stays the same over stops and starts.
        tick: ZooKeeper's unit of time in seconds. Sessions expire after at least two of them.
        config: more lines of its configuration file.
        jvm_options: more options of its JVM.
        server_id: its number in an ensemble; None for a server on its own.

    Example:
        >>> with ZooKeeperServer() as server:                       # doctest: +SKIP
        ...     server.connect_string
        '127.0.0.1:40123'
    """

    kind = "zookeeper"
    title = "ZooKeeper server"

    def __init__(
        self,
        data_dir: Path | None = None,
        port: int = 0,
        *,
        tick: float = 0.5,
        config: Sequence[str] = (),
        jvm_options: Sequence[str] = (),
        server_id: int | None = None,
    ) -> None:
        super().__init__(data_dir, port)
        self._tick = tick
        self._config = tuple(config)
        self._jvm_options = tuple(jvm_options)
        self._server_id = server_id

    @property
    def connect_string(self) -> str:
        """`host:port`."""
        return f"{HOST}:{self.port}"

    @property
    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None when it doesn't serve."""
        for line in four_letters(self.port, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ").strip()
        return None

    def _commands(self) -> Mapping[str, Sequence[str]]:
        main = _STANDALONE
        if self._server_id is not None:
            main = _QUORUM
            (self.data_dir / "myid").write_text(str(self._server_id), "utf-8")
        config = self.data_dir / "zoo.cfg"
        config.write_text("\n".join([*self._config_lines(), ""]), "utf-8")
        options = ["-Dzookeeper.admin.enableServer=false", *self._jvm_options]
        java = require_java().home
        command = java_command(java, class_path(), main, str(config), heap="256m", log=self.log_file, options=options)
        return {self.kind: command}

    def _answers(self) -> bool:
        return self.mode is not None

    def _config_lines(self) -> list[str]:
        return [
            f"tickTime={round(self._tick * 1000)}",
            f"dataDir={self.data_dir}",
            f"clientPort={self.port}",
            f"clientPortAddress={HOST}",
            "initLimit=20",
            "syncLimit=10",
            "maxClientCnxns=0",
            "4lw.commands.whitelist=srvr,mntr,cons",
            "autopurge.snapRetainCount=3",
            "autopurge.purgeInterval=1",
            *self._config,
        ]


class ZooKeeperEnsemble(Service):
    """Several ZooKeeper servers that form a quorum.

    Args:
        size: how many.
        data_dir: folder for the data of all; None for a temporary one.
        tick: as for `ZooKeeperServer`.
        config: as for `ZooKeeperServer`.
        jvm_options: as for `ZooKeeperServer`.

    Example:
        >>> with ZooKeeperEnsemble(3) as ensemble:                  # doctest: +SKIP
        ...     ensemble.servers[0].kill()
        ...     ensemble.wait_ready()
    """

    def __init__(
        self,
        size: int = 3,
        data_dir: Path | None = None,
        *,
        tick: float = 0.5,
        config: Sequence[str] = (),
        jvm_options: Sequence[str] = (),
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = make_temporary("storm-spark-zookeeper-") if data_dir is None else data_dir
        ports = free_ports(3 * size)
        quorum = [
            f"server.{number}={HOST}:{ports[3 * number - 2]}:{ports[3 * number - 1]}" for number in range(1, size + 1)
        ]
        self.servers = tuple(
            ZooKeeperServer(
                self.data_dir / str(number),
                ports[3 * number - 3],
                tick=tick,
                config=[*quorum, *config],
                jvm_options=jvm_options,
                server_id=number,
            )
            for number in range(1, size + 1)
        )

    @property
    def connect_string(self) -> str:
        """`host:port,host:port,...`."""
        return ",".join(server.connect_string for server in self.servers)

    @property
    def leader(self) -> ZooKeeperServer | None:
        """The server that leads the others; None while there is no quorum."""
        return next((server for server in self.servers if server.mode in ("leader", "standalone")), None)

    def start(self, timeout: float = 60) -> None:
        """Starts all that don't run and returns when they serve.

        Raises:
            SetupError: they don't in time.
        """
        for server in self.servers:
            if server.pid is None:
                server.start(wait=False)
        for server in self.servers:
            server.wait_ready(timeout)

    def wait_ready(self, timeout: float = 30) -> None:
        """Returns as soon as those of the servers that run serve.

        Raises:
            SetupError: they don't in time.
        """
        for server in self.servers:
            if server.pid is not None:
                server.wait_ready(timeout)

    def close(self) -> None:
        """Ends all of them and removes their data if they were temporary."""
        for server in self.servers:
            server.close()
        if self._temporary:
            remove_temporary(self.data_dir)


def four_letters(port: int, word: str, timeout: float = 1) -> str:
    """Returns what the server on `port` answers to one of ZooKeeper's four-letter words; empty if it doesn't."""
    answer = bytearray()
    with (
        contextlib.suppress(OSError),
        socket.create_connection((HOST, port), timeout=timeout) as connection,
    ):
        connection.sendall(word.encode())
        while data := connection.recv(65536):
            answer += data
    return answer.decode("utf-8", "replace")


def class_path() -> str:
    """Returns the class path of a ZooKeeper server, from the jars that pyspark ships.

    Raises:
        SetupError: pyspark has no ZooKeeper.
    """
    import pyspark

    folder = Path(pyspark.__file__).parent / "jars"
    jars = sorted(jar for pattern in _JARS for jar in folder.glob(pattern))
    if not any(jar.name.startswith("zookeeper-") for jar in jars):
        raise SetupError(f"no ZooKeeper among pyspark's jars in {folder}")
    return os.pathsep.join(map(str, jars))
