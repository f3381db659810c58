"""The driver: runs the topology from its checkpoint until it is complete or killed.

`python -m lab.faults.driver SETTINGS.json`. Its events tell the harness what it is doing, one JSON object a line. At
the end it reads the state back with Spark.

Exit codes: 0 complete, 3 the topology failed or its checkpoint was refused, 1 anything else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.faults.gates import GatedMessages
from lab.load.state import read_state
from lab.load.topology import Load, build
from storm_on_spark import LocalCluster
from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.storage import inside
from storm_on_spark.spark.query.sink import Sink
from storm_on_spark.spark.session import local_session, stop_session

NAME = "faults"
REFUSED = 3
"""Exit code: the topology could not continue, and reported why."""


@dataclass(frozen=True)
class Settings:
    """The settings of a driver."""

    checkpoint: str
    ledger: str
    events: str
    """File for the events of this driver."""
    state: str
    """File for the state at the end."""
    die_after_sink: str
    """While this file exists, the driver kills itself when the sink of a micro-batch has delivered."""
    messages: int
    seconds: float
    master: str
    conf: Mapping[str, Any]
    tables: str | None = None
    """Folder in which bolts of each kind write as well."""
    windows: bool = False
    """Whether there is a windowed bolt."""
    gates: str | None = None
    """Folder with a file for each task of the spout, whose `next_tuple` blocks while another process has locked it."""
    tasks: int = 2
    """Of each bolt."""

    def write(self, path: Path) -> None:
        """Writes them for `main`."""
        path.write_text(json.dumps(asdict(self)))


def main(path: str) -> int:
    """Runs the topology; returns the exit code."""
    settings = Settings(**json.loads(Path(path).read_text()))
    events = Path(settings.events)
    _die_after_sink(Path(settings.die_after_sink), events)
    tables = None if settings.tables is None else Path(settings.tables)
    load, windows = Load(settings.messages, settings.seconds), settings.windows
    spout = None if settings.gates is None else GatedMessages(load, settings.ledger, settings.gates)
    topology = build(load, Path(settings.ledger), spout, tables=tables, windows=windows, tasks=settings.tasks)
    tell(events, "python")
    sparks = {key: str(value) for key, value in settings.conf.items() if key.startswith("spark.")}
    spark = local_session(settings.master, sparks, settings.checkpoint)
    tell(events, "session")
    try:
        with LocalCluster(spark) as cluster:
            cluster.submit_topology(NAME, settings.conf, topology)
            tell(events, "submitted")
            cluster.await_completion(NAME)
            info = cluster.get_topology_info(NAME)
        tell(events, "completed", status=info.status)
        state = read_state(spark, settings.checkpoint, windows=settings.windows)
        Path(settings.state).write_text(json.dumps(state))
    except StormError as error:
        tell(events, "refused", kind=type(error).__name__, reason=str(error))
        return REFUSED
    finally:
        stop_session(spark)
    return 0


def tell(events: Path, event: str, **more: object) -> None:
    """Appends an event."""
    with events.open("a") as file:
        file.write(json.dumps({"event": event, "time": time.monotonic_ns(), **more}) + "\n")


def _die_after_sink(trigger: Path, events: Path) -> None:
    """Makes the sink kill this process between its delivery and Spark's commit, when `trigger` says so."""
    call = Sink.__call__

    def deliver(self: Sink, frame: Any, batch: int) -> None:
        call(self, frame, batch)
        # Without outcomes nothing could be told twice.
        if trigger.exists() and batch in BatchFiles(inside(self._folder, "outcomes")).batches():
            trigger.unlink()
            tell(events, "delivered", batch=batch)
            os.kill(os.getpid(), signal.SIGKILL)

    Sink.__call__ = deliver  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
