"""A real RabbitMQ for tests: Debian's package, in processes that end with that of the test."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.parent import die_with_parent

HOST: Final = "127.0.0.1"
PROGRAM: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_POLL_SECS: Final = 0.05
_TERM_SECS: Final = 15.0


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
        self._processes: list[subprocess.Popen[bytes]] = []
        self._keepers: list[threading.Thread] = []

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
        deadline = time.monotonic() + timeout
        while not self._serves():
            if self._processes[-1].poll() is not None or time.monotonic() > deadline:
                last = (self.folder / "rabbitmq.out").read_text("utf-8", "replace")[-1000:]
                self.kill()
                raise SetupError(f"RabbitMQ on port {self.port} doesn't serve: {last}")
            time.sleep(_POLL_SECS)

    def kill(self) -> None:
        """Ends it by SIGKILL, as a crash would; it can be started again."""
        processes, self._processes = self._processes, []
        keepers, self._keepers = self._keepers, []
        for process in reversed(processes):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
        for keeper in keepers:
            keeper.join(_TERM_SECS)

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
        started = threading.Event()

        def keep() -> None:
            # The kernel ends the process with the thread that started it.
            with (self.folder / f"{name}.out").open("wb") as out:
                process = subprocess.Popen(
                    die_with_parent(command),
                    env=self._environment(),
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._processes.append(process)
            started.set()
            process.wait()

        keeper = threading.Thread(target=keep, name=f"{name}-{self.port}", daemon=True)
        self._keepers.append(keeper)
        keeper.start()
        started.wait()

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
