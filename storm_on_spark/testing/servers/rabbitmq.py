"""A real RabbitMQ for tests: Debian's package, in processes that end with that of the test."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.kept import KeptProcess

HOST: Final = "127.0.0.1"
PROGRAM: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitServer:
    """One RabbitMQ server on the loopback interface, with the user `guest`, and data that `close` removes.

    Raises:
        SetupError: Debian's package `rabbitmq-server` is not installed.

    Example:
        >>> with RabbitServer() as server:                           # doctest: +SKIP
        ...     server.port
        40123
    """

    def __init__(self) -> None:
        if not PROGRAM.exists() or shutil.which("epmd") is None:
            raise SetupError("RabbitMQ is not installed here: apt-get install rabbitmq-server")
        self.port, self._node_port, self._names_port = (_free_port() for _ in range(3))
        self.folder = Path(tempfile.mkdtemp(prefix="storm-spark-rabbitmq-"))
        self._processes: list[KeptProcess] = []

    def __enter__(self) -> RabbitServer:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, timeout: float = 60) -> None:
        """Starts it, with the data that it has, and returns when it serves: after about ten seconds.

        Raises:
            SetupError: it doesn't.
        """
        # Its own registry of node names: that of the machine is left alone.
        epmd = str(shutil.which("epmd"))
        self._spawn("epmd", [epmd, "-address", HOST, "-port", str(self._names_port)])
        self._spawn("rabbitmq", [str(PROGRAM)])
        if not self._processes[-1].serves(self._serves, timeout):
            last = (self.folder / "rabbitmq.out").read_text("utf-8", "replace")[-1000:]
            self.kill()
            raise SetupError(f"RabbitMQ on port {self.port} doesn't serve: {last}")

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would; it can be started again."""
        processes, self._processes = self._processes, []
        for process in reversed(processes):
            process.end()

    def close(self) -> None:
        """Ends it for good, and removes its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _serves(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as probe:
                probe.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(probe.recv(1))
        except OSError:
            return False

    def _spawn(self, name: str, command: list[str]) -> None:
        out = self.folder / f"{name}.out"
        process = KeptProcess(f"{name}-{self.port}", command, self.folder, out, self._environment())
        self._processes.append(process)

    def _environment(self) -> dict[str, str]:
        folder = self.folder
        plugins = folder / "plugins"
        plugins.write_text("[].", "utf-8")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": HOST,
            # In the foreground, and without the shell that would start it again.
            "RUNNING_UNDER_SYSTEMD": "1",
            "RABBITMQ_NODENAME": "storm@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}",
        }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
