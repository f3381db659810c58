"""Real ZooKeeper servers on this machine, for development and tests: one, or an ensemble.

They are reachable from this machine only, keep their data in a folder of their own, and end with the process that
started them, however that ends.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.service import Service
from storm_on_spark.cluster.zookeeper.java import server_command
from storm_on_spark.runtime.processes.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.kept import KeptProcess

HOST: Final = "127.0.0.1"
_STANDALONE: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_QUORUM: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_START_ATTEMPTS: Final = 3
"""A port that was free may be taken before the server binds it."""


class ZooKeeperServer(Service):
    """One ZooKeeper server, in a process of its own.

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
        self.port = port or free_port()
        self._port_is_ours = port == 0
        self._temporary = data_dir is None
        self.data_dir = make_temporary("storm-spark-zookeeper-") if data_dir is None else data_dir
        self._tick = tick
        self._config = tuple(config)
        self._jvm_options = tuple(jvm_options)
        self._server_id = server_id
        self._process: KeptProcess | None = None

    @property
    def connect_string(self) -> str:
        """`host:port`."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Of its process; None when it doesn't run."""
        return None if self._process is None else self._process.pid

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self.data_dir / "zookeeper.log"

    @property
    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None when it doesn't serve."""
        for line in four_letters(self.port, "srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ").strip()
        return None

    def start(self, *, wait: bool = True, timeout: float = 30) -> None:
        """Starts it, with the data that it has.

        Args:
            wait: whether to return only when it serves.
            timeout: how long that may take, in seconds.

        Raises:
            SetupError: it ended at once, or doesn't serve in time; the message has its last words.
        """
        for attempt in range(_START_ATTEMPTS):
            self._spawn()
            if not wait:
                return
            try:
                self.wait_ready(timeout)
                return
            except SetupError as error:
                if not self._port_is_ours or "BindException" not in str(error) or attempt == _START_ATTEMPTS - 1:
                    raise
                self.port = free_port()

    def wait_ready(self, timeout: float = 30) -> None:
        """Returns as soon as it serves.

        Raises:
            SetupError: it has ended, or doesn't serve in time.
        """
        if self._process is not None and self._process.serves(lambda: self.mode is not None, timeout):
            return
        what = "ended" if self.pid is None else f"doesn't serve after {timeout:g} s"
        last = self._last_words()
        self.kill()
        raise SetupError(f"the ZooKeeper server on port {self.port} {what}: {last}")

    def stop(self) -> None:
        """Ends it; it can be started again."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would; it can be started again."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stops its process by SIGSTOP: its connections stay open and silent."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Has a paused server go on."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it for good and removes its data if they were temporary."""
        self.stop()
        if self._temporary:
            remove_temporary(self.data_dir)

    def _spawn(self) -> None:
        if self.pid is not None:
            raise SetupError(f"the ZooKeeper server on port {self.port} runs already")
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        main = _STANDALONE
        if self._server_id is not None:
            main = _QUORUM
            (self.data_dir / "myid").write_text(str(self._server_id), "utf-8")
        config = self.data_dir / "zoo.cfg"
        config.write_text("\n".join([*self._config_lines(), ""]), "utf-8")
        command = server_command(main, config, self.log_file, self._jvm_options)
        try:
            self._process = KeptProcess(
                f"zookeeper-server-{self.port}", command, self.data_dir, self.data_dir / "zookeeper.out"
            )
        except OSError as error:
            raise SetupError(f"the ZooKeeper server on port {self.port} can't be started: {error}") from error

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

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(number)

    def _last_words(self) -> str:
        words: list[str] = []
        for file in (self.data_dir / "zookeeper.out", self.log_file):
            with contextlib.suppress(OSError):
                lines = file.read_text("utf-8", "replace").splitlines()
                words.extend(line for line in lines[-200:] if " INFO " not in line and not line.startswith("\t"))
        return " | ".join(words[-5:]) or "it said nothing"


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


def free_port() -> int:
    """Returns a port that nobody listens on at this moment."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Returns different ports that nobody listens on at this moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
