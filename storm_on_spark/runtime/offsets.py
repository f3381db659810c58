"""The offsets of the streaming source: how far a micro-batch reaches.

An offset is a JSON object in Spark's own offset log: a position in every spout log, the topology's clock and the last
micro-batch whose carried tuples have been taken in. What a batch does follows from its two offsets alone, so a batch
that runs again has the same input, the same ticks and the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storm_on_spark.api.errors import CheckpointError

VERSION = 1


@dataclass(frozen=True)
class Offset:
    """A point in the topology's input."""

    logs: Mapping[int, int] = field(default_factory=dict)
    """Spout task -> position in its log."""
    clock: int = 0
    """The topology's time in ms: how long it has run, over all restarts."""
    carried: int = -1
    """The last micro-batch whose carried tuples are behind this point."""

    def to_json(self) -> dict[str, Any]:
        """Returns the offset in terms of JSON."""
        logs = {str(task): position for task, position in sorted(self.logs.items())}
        return {"version": VERSION, "logs": logs, "clock": self.clock, "carried": self.carried}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Offset:
        """Returns the offset that `to_json` wrote.

        Raises:
            CheckpointError: it has another version.

        Example:
            >>> Offset.from_json(Offset({3: 120}, 500, 7).to_json())
            Offset(logs={3: 120}, clock=500, carried=7)
        """
        if data.get("version") != VERSION:
            raise CheckpointError(
                f"the checkpoint's offsets have format version {data.get('version')}; this release reads {VERSION}"
            )
        logs = {int(task): int(position) for task, position in data["logs"].items()}
        return cls(logs, int(data["clock"]), int(data["carried"]))
