"""A driver that does nothing but write to its checkpoint: `python -m failover.driver`, as a supervisor starts it.

It takes part in the cluster as a real one does, and every tenth of a second appends a record to `writes` in the
checkpoint: who wrote, and when. Two drivers on one checkpoint show there.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

from storm_on_spark.cluster.driver.begin import begin
from storm_on_spark.spark.owner import OwnerFence
from storm_on_spark.testing.simulated_driver import SimulatedDriver, SimulatedQuery

RECORD = struct.Struct("<qq")
"""Process id, and monotonic ns."""
FILE = "writes"


class WritingQuery(SimulatedQuery):
    """Writes each time that it is looked at, if the checkpoint is its own.

    Args:
        name: the topology's.
        conf: its configuration.
        active: whether it counts.
        checkpoint: where it writes.
        fence: says whose the checkpoint is.
    """

    def __init__(self, name: str, conf: dict[str, Any], active: bool, checkpoint: Path, fence: OwnerFence) -> None:
        super().__init__(name, conf, active)
        self._fence = fence
        self._file = os.open(checkpoint / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def isActive(self) -> bool:  # noqa: N802 # as in Spark
        """Whether it has not ended."""
        if self._active and not self._stopped and self._fence.lost() is None:
            os.write(self._file, RECORD.pack(os.getpid(), time.monotonic_ns()))
        return super().isActive


class WritingDriver(SimulatedDriver):
    """A driver that runs a `WritingQuery`."""

    def _start_query(self, compiled: Any, session: Any, fence: OwnerFence) -> Any:
        checkpoint = Path(self._spec.checkpoint)
        return WritingQuery(self._spec.name, self._spec.conf, self._active(), checkpoint, fence)


def writes(checkpoint: Path) -> list[tuple[int, int]]:
    """Returns who wrote to a checkpoint, and when, in the order in which it was written."""
    path = checkpoint / FILE
    content = path.read_bytes() if path.exists() else b""
    return [(pid, at) for pid, at in RECORD.iter_unpack(content[: len(content) // RECORD.size * RECORD.size])]


if __name__ == "__main__":
    WritingDriver(*begin()).run()
