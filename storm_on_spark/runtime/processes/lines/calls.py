"""Calls of processes on other machines to a listener on the driver's."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from storm_on_spark.runtime.processes.lines.line import DEAD_SECS, Line, call_driver, notice_loss
from storm_on_spark.runtime.processes.lines.listener import TEXT_LENGTH, Hello

CALL_SECS: Final = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


@dataclass(frozen=True)
class Address:
    """Where a listener is, and what its callers must know. Its text form contains no secret."""

    host: str
    """As `spark.driver.host`."""
    port: int
    secret: bytes = field(repr=False)
    dead_secs: int = DEAD_SECS
    """How long the listener's machine may be silent before a connection counts as broken."""

    def call(self, hello: Hello) -> Line:
        """Connects once, and sends the introduction.

        Raises:
            EOFError: the listener does not accept this process.
            OSError: nobody listens, or not the driver of this run, or the connection is broken.
        """
        connection = socket.create_connection((self.host, self.port), CALL_SECS)
        try:
            notice_loss(connection, self.dead_secs)
            line = call_driver(connection, self.secret)
            line.send_bytes(hello.to_bytes())
            line.settimeout(None)
        except BaseException:
            connection.close()
            raise
        return line


def call(arguments: Mapping[str, Any]) -> tuple[Line, bytes]:
    """Connects until the listener accepts this process; returns the connection and the first message.

    The connection of a process that a later attempt of the same Spark task has replaced is closed.

    Args:
        arguments: from the keeper of the process; see `Place`.
    """
    pause = _FIRST_PAUSE
    address = Address(
        arguments["driver"], arguments["port"], bytes.fromhex(arguments["secret"]), arguments["dead_secs"]
    )
    machine, previous = arguments["machine"][:TEXT_LENGTH], arguments["previous"][:TEXT_LENGTH]
    hello = Hello(arguments["number"], arguments["attempt"], os.getpid(), machine, previous)
    while True:
        with contextlib.suppress(OSError, EOFError):
            line = address.call(hello)
            try:
                return line, line.recv_bytes()
            except BaseException:
                line.close()
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
