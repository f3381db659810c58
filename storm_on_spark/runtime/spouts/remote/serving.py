"""A remote spout host, after it has received its setup."""

from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path

from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.api.text.traces import own_trace, summary, whole_trace
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.spouts.messages import Failed, Message, Setup
from storm_on_spark.runtime.spouts.spout_host import SpoutHost, keep_from_children
from storm_on_spark.runtime.spouts.watching.holding import HostBreath

SEEN_SECONDS = 10.0
"""How long a file that the driver wrote before may take to be seen here."""


class RemoteSpoutHost(SpoutHost):
    """A spout host that may run on another machine than the driver.

    Args:
        connection: to the driver.
        setup: the driver's first message.
        breath: as for `SpoutHost`.
    """

    def __init__(self, connection: Line, setup: Setup, breath: HostBreath) -> None:
        self._first: Setup | None = setup
        super().__init__(connection, breath)

    def _receive(self) -> Message:
        first, self._first = self._first, None
        return super()._receive() if first is None else first


def here(setup: Setup, machine: str) -> Setup:
    """Adapts a setup to this machine.

    Raises:
        CheckpointError: the checkpoint is a directory, and this machine has another one under that name.
    """
    folder = Path(setup.folder)
    if setup.claim and folder.is_absolute():  # a store has a URL
        claim = folder.parent / "writers" / setup.claim
        deadline = time.monotonic() + SEEN_SECONDS
        while not claim.exists():
            # Network file systems show a new file after some seconds.
            if time.monotonic() > deadline or not folder.parent.exists():
                raise CheckpointError(
                    f"{folder.parent.parent} on {machine} is not the directory that the driver has under that name: "
                    "with spouts on executors, topology.checkpoint.dir must be a directory that is mounted on all "
                    "machines, or a folder of a store; or set topology.spouts.placement to driver"
                )
            time.sleep(0.1)
    # Machines don't share a monotonic clock: the message says what the topology's time was when it was sent.
    return setup if setup.clock_at is None else dataclasses.replace(setup, clock_at=time.monotonic())


def serve(line: Line, first: bytes, machine: str, breath: HostBreath) -> None:
    """Runs a spout host until the driver says stop or goes away.

    Args:
        line: to the driver.
        first: its first message.
        machine: the name of this one.
        breath: of this process.
    """
    keep_from_children(line)
    try:
        # The driver has sent it over an authenticated connection.
        host = RemoteSpoutHost(line, here(pickle.loads(first), machine), breath)
    except Exception as error:
        reason = str(error) if isinstance(error, StormError) else f"a spout host can't start: {summary(error)}"
        line.send_bytes(pickle.dumps(Failed(-1, "", reason, whole_trace(error), own_trace(error)), 5))
        return
    host.run()
