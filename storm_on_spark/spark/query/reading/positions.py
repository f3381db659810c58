"""What both sides of the streaming source know: the run's settings, and where a micro-batch begins and ends."""

from __future__ import annotations

import json
from dataclasses import dataclass

from storm_on_spark.runtime.batches.offsets import Offset


@dataclass(frozen=True)
class SourceSettings:
    """What the source needs to know of its run."""

    start_id: str
    spec: bytes
    socket: str
    """Where the coordinator listens."""
    partitions: int
    """The plan's."""


def is_offsets(body: bytes) -> bool:
    """Returns whether a row stands for a micro-batch; others are chunks, which begin with their version."""
    return body.startswith(b"[")


def offsets_of(body: bytes) -> tuple[Offset, Offset]:
    """Returns where a micro-batch begins and ends, from the row that stands for it."""
    start, end = json.loads(body)
    return Offset.from_json(start), Offset.from_json(end)
