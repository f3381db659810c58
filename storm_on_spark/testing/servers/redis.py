"""A real Redis for tests: Debian's package, in a process that ends with that of the test."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Mapping, Sequence

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server


class RedisServer(Server):
    """One Redis server on the loopback interface, with data that `close` removes.

    Acknowledged data survives the end of its process.

    Args:
        password: for clients; empty for none.

    Raises:
        SetupError: Debian's package `redis-server` is not installed.

    Example:
        >>> with RedisServer() as server:                           # doctest: +SKIP
        ...     server.port
        40123
    """

    kind = "redis"
    title = "Redis server"
    closed_by = signal.SIGKILL

    def __init__(self, password: str = "") -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise SetupError("Redis is not installed here: apt-get install redis-server")
        super().__init__()
        self._program = program
        self._password = password

    def _commands(self) -> Mapping[str, Sequence[str]]:
        # In a file, as passwords don't belong in arguments.
        settings = self.data_dir / "redis.conf"
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"dir {self.data_dir}",
            "daemonize no",
            'save ""',
            "appendonly yes",
            "appendfsync always",
            *([f"requirepass {self._password}"] if self._password else []),
        ]
        settings.touch(0o600)
        settings.write_text("\n".join(lines) + "\n", "utf-8")
        return {self.kind: [self._program, str(settings)]}

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as probe:
                probe.sendall(b"PING\r\n")
                said = probe.recv(64)
                return said[:1] in (b"+", b"-") and not said.startswith(b"-LOADING")
        except OSError:
            return False
