"""The messages of a live process. Those between it and spout hosts are in `spouts.messages`.

They are pickled. The socket is in a folder of this run that only this user can enter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import Mark

Key = tuple[int, str, int]
"""Of a value of the state: task, name, number."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """From a worker: go on from here. Answered by `Adopted`."""

    start_id: str
    spec: bytes
    token: bytes
    """Names the state. It is part of what the micro-batch commits, so both are committed, or none."""
    offset: Offset
    """Up to where the state has executed the logs."""
    values: Mapping[Key, bytes]
    """The state."""
    carried: tuple[bytes, ...]
    """Chunks of back edges that wait to be executed."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """From a worker: what happened between two offsets? Answered by `Cut`, or None if that isn't known here."""

    token: bytes
    start: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class Cut:
    """What a micro-batch would have done."""

    token: bytes
    """Of the state that it leaves behind."""
    changes: Mapping[Key, bytes | None]
    """What to write to the state store; None for what to remove."""
    rows: tuple[bytes, ...]
    """Chunks for the sink."""


@dataclass(frozen=True, slots=True)
class Look:
    """From the coordinator, now and then: the topology still runs. Answered by `Status`."""

    clock_ms: int
    clock_at: float
    """Monotonic time (the machine's, in s) at which the topology's clock showed `clock_ms`."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """From the coordinator: everything up to `start` is committed. Execute what is written, and cut the state.

    Answered by the `Offset` of the cut; None if the tasks don't go on from `start`.
    """

    start: Offset
    written: Mapping[int, Mark]
    """Ends of the logs, by spout task, as the coordinator knows them. What a host said may have been lost."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Whether an `Adopt` was followed."""

    live: bool
