"""The driver of the scenarios' topologies: `python -m lab.failover.driver`, as a supervisor starts it.

For most of them it only writes to its checkpoint. It takes part in the cluster as a real one does, and every tenth of a
second appends a record to `writes` in the checkpoint: who wrote, and when. So two drivers on one checkpoint are visible
there. The topology of `job` gets a real driver, whose spouts and bolts append such records.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from lab.failover.routes import clock_of, install
from lab.failover.writes import Writer
from storm_on_spark.cluster.driver.begin import begin
from storm_on_spark.cluster.driver.files import DriverSpec, ProcessFile, RunFolder
from storm_on_spark.cluster.driver.main import Driver
from storm_on_spark.cluster.driver.reports import Reports
from storm_on_spark.spark.checkpoint.directory import VERSION
from storm_on_spark.spark.checkpoint.stored import CheckpointFence
from storm_on_spark.testing.simulated.driver import SimulatedDriver, SimulatedQuery

REAL = "failover.ledger"
"""A topology with this in its configuration is one for Spark."""


class WritingQuery(SimulatedQuery):
    """Writes each time that it is read, if it owns the checkpoint.

    Args:
        name: the topology's.
        conf: its configuration.
        active: whether it counts.
        checkpoint: where it writes.
        fence: knows the owner of the checkpoint.
    """

    def __init__(self, name: str, conf: dict[str, Any], active: bool, checkpoint: Path, fence: CheckpointFence) -> None:
        super().__init__(name, conf, active)
        self._fence = fence
        self._writer = Writer(checkpoint)

    @property
    def isActive(self) -> bool:  # noqa: N802 # as in Spark
        """Whether it has not ended."""
        if self._active and not self._stopped and self._fence.lost() is None:
            self._writer.write()
        return super().isActive


def _commit(checkpoint: Path, name: str) -> None:
    """Creates the files that a real driver leaves after its first micro-batch."""
    manifest = checkpoint / "storm" / "manifest.json"
    if not manifest.exists():
        found = {"version": VERSION, "name": name, "storm_id": f"{name}-{uuid.uuid4().hex[:12]}", "partitions": 1}
        manifest.write_text(json.dumps({**found, "fingerprint": {}}), "utf-8")
    commits = checkpoint / "commits"
    commits.mkdir(exist_ok=True)
    (commits / "0").touch()


class WritingDriver(SimulatedDriver):
    """A driver that runs a `WritingQuery`, and whose clock may be wrong."""

    def __init__(self, folder: RunFolder, spec: DriverSpec, process: ProcessFile) -> None:
        super().__init__(folder, spec, process)
        self._reports = Reports(spec, clock_of(spec.cluster))

    def _start_query(self, compiled: Any, session: Any, fence: CheckpointFence) -> Any:
        checkpoint = Path(self._spec.checkpoint)
        _commit(checkpoint, self._spec.name)
        return WritingQuery(self._spec.name, self._spec.conf, self._active(), checkpoint, fence)


if __name__ == "__main__":
    folder, spec, process = begin()
    install(spec.cluster)
    (Driver if REAL in spec.conf else WritingDriver)(folder, spec, process).run()
