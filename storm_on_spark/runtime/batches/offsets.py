"""The offsets of the streaming source: how far a micro-batch reaches.

An offset is a JSON object in Spark's own offset log: a position in every spout log and the writer that it was planned
from, the topology's clock and the last micro-batch whose carried tuples have been taken in. What a batch does follows
from its two offsets alone, so a batch that runs again has the same input, the same ticks and the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.spouts.log.lineage import NOBODY, Mark, WriterEpoch

VERSION = 2


@dataclass(frozen=True)
class Offset:
    """A point in the topology's input."""

    logs: Mapping[int, int] = field(default_factory=dict)
    """Spout task -> position in its log."""
    clock: int = 0
    """The topology's time in ms: how long it has run, over all restarts."""
    carried: int = -1
    """The last micro-batch whose carried tuples are behind this point."""
    epochs: Mapping[int, WriterEpoch] = field(default_factory=dict)
    """Spout task -> the writer of the record that ends at its position."""

    def mark(self, task: int) -> Mark:
        """Returns a task's position, and the writer of what is before it; the log's beginning if it has none."""
        return Mark(self.logs.get(task, 0), self.epochs.get(task, NOBODY))

    def to_json(self) -> dict[str, Any]:
        """Returns the offset in terms of JSON."""
        logs = {str(task): position for task, position in sorted(self.logs.items())}
        epochs = {str(task): list(epoch) for task, epoch in sorted(self.epochs.items())}
        return {"version": VERSION, "logs": logs, "clock": self.clock, "carried": self.carried, "epochs": epochs}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Offset:
        """Returns the offset that `to_json` wrote.

        Raises:
            CheckpointError: it has another version.

        Example:
            >>> Offset.from_json(Offset({3: 120}, 500, 7).to_json())
            Offset(logs={3: 120}, clock=500, carried=7, epochs={})
        """
        if data.get("version") != VERSION:
            raise CheckpointError(other_format("the checkpoint's offset", data.get("version"), VERSION))
        logs = {int(task): int(position) for task, position in data["logs"].items()}
        epochs = {int(task): WriterEpoch(*map(int, epoch)) for task, epoch in data["epochs"].items()}
        return cls(logs, int(data["clock"]), int(data["carried"]), epochs)
