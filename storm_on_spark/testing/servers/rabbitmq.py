"""A real RabbitMQ for tests: Debian's package, in processes that end with that of the test."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server, free_ports

PROGRAM: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitServer(Server):
    """One RabbitMQ server on the loopback interface, with the user `guest`, and data that `close` removes.

    It serves after about ten seconds.

    Raises:
        SetupError: Debian's package `rabbitmq-server` is not installed.

    Example:
        >>> with RabbitServer() as server:                           # doctest: +SKIP
        ...     server.port
        40123
    """

    kind = "rabbitmq"
    title = "RabbitMQ server"
    closed_by = signal.SIGKILL

    def __init__(self) -> None:
        if not PROGRAM.exists() or shutil.which("epmd") is None:
            raise SetupError("RabbitMQ is not installed here: apt-get install rabbitmq-server")
        super().__init__()
        self._node_port, self._names_port = free_ports(2, besides=self.port)

    def _commands(self) -> Mapping[str, Sequence[str]]:
        # A separate registry of node names, so that the machine's is left alone.
        registry = [str(shutil.which("epmd")), "-address", HOST, "-port", str(self._names_port)]
        return {"epmd": registry, self.kind: [str(PROGRAM)]}

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as probe:
                probe.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(probe.recv(1))
        except OSError:
            return False

    def _environment(self) -> dict[str, str]:
        folder = self.data_dir
        plugins = folder / "plugins"
        plugins.write_text("[].", "utf-8")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": HOST,
            # In the foreground, and without the shell that would restart it.
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
