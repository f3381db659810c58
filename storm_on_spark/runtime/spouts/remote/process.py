"""The process of a spout host that a keeper has started: `python -m ….remote.process PARENT PAGE`.

It calls the driver first, and imports what a spout host needs after that: the driver hears at once how the process
before it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from typing import Any

from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels, prints
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
from storm_on_spark.runtime.processes.parent import die_with
from storm_on_spark.runtime.spouts.remote.line import Line, call_driver, notice_loss
from storm_on_spark.runtime.spouts.remote.listener import Hello

_CALL_SECONDS = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


def call(arguments: dict[str, Any]) -> tuple[Line, bytes]:
    """Connects to the driver until it accepts this host; returns the connection and the driver's first message.

    The driver closes the connection of a host that a later attempt of the same Spark task has replaced.
    """
    pause = _FIRST_PAUSE
    hello = Hello(arguments["number"], arguments["attempt"], os.getpid(), arguments["machine"], arguments["previous"])
    while True:
        with contextlib.suppress(OSError, EOFError):
            line = _called(arguments["driver"], arguments["port"], bytes.fromhex(arguments["secret"]))
            try:
                line.send_bytes(hello.to_bytes())
                line.settimeout(None)
                return line, line.recv_bytes()
            except BaseException:
                line.close()
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _called(driver: str, port: int, secret: bytes) -> Line:
    connection = socket.create_connection((driver, port), _CALL_SECONDS)
    try:
        notice_loss(connection)
        return call_driver(connection, secret)
    except BaseException:
        connection.close()
        raise


def main() -> None:
    """Runs the host for the process that the first argument names; the second is for `holding`."""
    die_with(int(sys.argv[1]))
    ignore_interrupts()
    arguments = json.loads(sys.stdin.buffer.read())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout, sys.stderr = (
        prints.labelled(stream, arguments["mark"].encode()) for stream in (sys.stdout, sys.stderr)
    )
    breakpoints.pass_over()
    log_levels.follow()
    with contextlib.suppress(PermissionError):  # it leads a session, and so a group
        os.setpgid(0, 0)
    line, first = call(arguments)
    from storm_on_spark.runtime.spouts.remote.serving import serve
    from storm_on_spark.runtime.spouts.watching.holding import HostBreath

    serve(line, first, arguments["machine"], HostBreath(int(sys.argv[2])))


if __name__ == "__main__":
    main()
