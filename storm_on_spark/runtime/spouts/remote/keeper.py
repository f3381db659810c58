"""Runs in a Spark task and keeps a process of a run, such as a spout host, running until the driver ends it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from storm_on_spark.runtime.processes.ending.signals import held_back
from storm_on_spark.runtime.processes.lines.line import DEAD_SECS
from storm_on_spark.runtime.spouts.host_process import end_group
from storm_on_spark.runtime.spouts.watching.holding import HostWatch

_QUICK_SECONDS = 10.0
_QUICK_ENDS = 5
"""So many processes in a row that could not even start are enough."""
_CANT_START = 1
"""Python's exit code where it can't import what it is to run."""


@dataclass(frozen=True)
class Place:
    """The data that such a process needs to connect to the driver. Its text form contains no secret."""

    number: int
    """Which of the run's processes of its kind it is."""
    driver: str
    """The driver's address, as `spark.driver.host`."""
    port: int
    secret: str
    """Of the run, in hexadecimal digits."""
    mark: str = ""
    """What goes before each line that a spout or bolt prints."""
    module: str = "storm_on_spark.runtime.spouts.remote.process"
    """What the process executes."""
    what: str = "spout host"
    """It, in a sentence."""
    dead_secs: int = DEAD_SECS
    """How long the driver's machine may be silent before the connection counts as broken."""
    stopped_secs: float | None = None
    """How long the process may be stopped before it is ended; None for as long as somebody likes."""

    def __repr__(self) -> str:
        return f"Place(number={self.number}, driver={self.driver!r}, port={self.port})"


def keep_host(place: Place, attempt: int) -> None:
    """Starts the process and restarts it whenever it ends. Returns when the driver has stopped it.

    Args:
        place: the process, and the driver's address.
        attempt: of this task; a later one has a greater number.

    Raises:
        RuntimeError: the process can't be started here.
    """
    package = str(Path(__file__).parents[4])
    # Everything that this process can import, including files shipped by Spark.
    path = os.pathsep.join(dict.fromkeys([package, *filter(None, sys.path)]))
    previous, quick = "", 0
    while True:
        started = time.monotonic()
        watch = HostWatch(place.stopped_secs)
        with held_back(signal.SIGINT):
            process = subprocess.Popen(
                # Passed by file descriptor, because other users can read arguments.
                [sys.executable, "-m", place.module, str(os.getpid()), str(watch.descriptor)],
                stdin=subprocess.PIPE,
                pass_fds=[watch.descriptor],
                env={**os.environ, "PYTHONPATH": path},
            )
        watch.start(process)
        assert process.stdin is not None
        arguments = {**asdict(place), "attempt": attempt, "previous": previous, "machine": this_machine()}
        try:
            with process.stdin:
                process.stdin.write(json.dumps(arguments).encode())
        except BrokenPipeError:
            pass  # it has ended; its exit code says how
        code = end_group(process)
        how = watch.how_it_ended(code)
        if code == 0:
            return
        quick = quick + 1 if code == _CANT_START and time.monotonic() - started < _QUICK_SECONDS else 0
        if quick == _QUICK_ENDS:
            raise RuntimeError(f"the process of {place.what} {place.number} can't be started on {this_machine()}")
        previous = f"{how} on {this_machine()}"


def this_machine() -> str:
    """Returns the name of this machine as Spark knows it."""
    return os.environ.get("SPARK_LOCAL_HOSTNAME") or os.environ.get("SPARK_LOCAL_IP") or socket.gethostname()
