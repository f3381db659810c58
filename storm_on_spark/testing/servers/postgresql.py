"""A real PostgreSQL for tests: Debian's package, in processes that end with that of the test."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server

USER: Final = "storm"
"""The user that clients connect as; its database is `postgres`."""
_PACKAGES: Final = Path("/usr/lib/postgresql")
"""Where Debian has each version."""
_OWNER: Final = "postgres"
"""The system user for the server if root starts it, because it refuses to run as root."""
_SETPRIV: Final = "/usr/bin/setpriv"
_INITDB_SECS: Final = 120
_PROTOCOL: Final = 3 << 16


class PostgresServer(Server):
    """One PostgreSQL server on the loopback interface, with data that `close` removes.

    Acknowledged data survives the end of its processes, but not a loss of power.

    Raises:
        SetupError: Debian's package `postgresql` is not installed.

    Example:
        >>> with PostgresServer() as server:                           # doctest: +SKIP
        ...     psycopg.connect(host="127.0.0.1", port=server.port, user="storm", password=server.password)
    """

    kind = "postgresql"
    title = "PostgreSQL server"
    # If root starts it, it runs as another user, who can't enter a temporary folder of root.
    parent = Path("/tmp") if os.geteuid() == 0 else None  # noqa: S108 - a folder for this user only is made there

    def __init__(self) -> None:
        self._programs = _programs()
        self._owner = pwd.getpwnam(_OWNER) if os.geteuid() == 0 else None
        self.password = secrets.token_hex(16)
        """The password for clients, since other users of this machine can reach the port too."""
        super().__init__()

    def stop(self) -> None:
        """Shuts it down in an orderly way, without waiting for clients; it can be started again."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Ends it at once and loses uncommitted data; it can be started again, and recovers.

        It uses the server's own immediate shutdown: each connection has a process in its own session, so SIGKILL for
        one process would leave others.
        """
        self._end(signal.SIGQUIT)

    def close(self) -> None:
        """Ends it for good, and removes its data."""
        self.kill()
        super().close()

    def _commands(self) -> Mapping[str, Sequence[str]]:
        data = self.data_dir / "data"
        if not data.exists():
            self._make(data)
        settings = {
            "port": self.port,
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            # The kernel keeps written data when processes end.
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 30,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return {self.kind: [*self._as_owner(), str(self._programs / "postgres"), "-D", str(data), *options]}

    def _make(self, data: Path) -> None:
        # In a file, as passwords don't belong in arguments.
        password = self.data_dir / "password"
        password.touch(0o600)
        password.write_text(self.password, "utf-8")
        if self._owner is not None:
            for place in (self.data_dir, password):
                os.chown(place, self._owner.pw_uid, self._owner.pw_gid)
        options = [f"--username={USER}", f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync"]
        command = [*self._as_owner(), str(self._programs / "initdb"), "-D", str(data), *options]
        try:
            subprocess.run(
                [*command, "--encoding=UTF8", "--locale=C"],
                cwd=self.data_dir,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_INITDB_SECS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or error
            raise SetupError(f"the data of the {self.title} can't be made: {said!s:.1000}") from None
        password.unlink()

    def _as_owner(self) -> list[str]:
        if self._owner is None:
            return []
        ids = [f"--reuid={self._owner.pw_uid}", f"--regid={self._owner.pw_gid}"]
        # When the user changes, the kernel forgets that the process must end with its parent.
        return [_SETPRIV, *ids, "--clear-groups", "--pdeathsig=KILL", "--"]

    def _answers(self) -> bool:
        """Returns whether it asks for a password: while it starts it refuses connections."""
        text = f"user\0{USER}\0database\0postgres\0\0".encode()
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as probe:
                probe.sendall(struct.pack("!ii", len(text) + 8, _PROTOCOL) + text)
                return probe.recv(1) == b"R"
        except OSError:
            return False


def _programs() -> Path:
    """Returns the folder of the newest version's programs."""
    found = [(int(folder.name), folder) for folder in _PACKAGES.glob("*") if re.fullmatch(r"\d+", folder.name)]
    for _, folder in sorted(found, reverse=True):
        if (folder / "bin" / "postgres").exists() and (folder / "bin" / "initdb").exists():
            return folder / "bin"
    installed = shutil.which("postgres")
    if installed is not None:
        return Path(installed).resolve().parent
    raise SetupError("PostgreSQL is not installed here: apt-get install postgresql")
