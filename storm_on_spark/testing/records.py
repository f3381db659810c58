"""Records of the test kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.tuple import Tuple

if TYPE_CHECKING:
    import pyarrow


class Emission(NamedTuple):
    """A tuple that a component under test emitted."""

    values: tuple[Any, ...]
    stream: str = DEFAULT_STREAM
    anchors: tuple[Tuple, ...] = ()
    """The input tuples that it is anchored to; empty for spouts and unanchored tuples."""
    message_id: Any = None
    """The message id of a spout's tuple; None for an unreliable one."""
    task: int | None = None
    """The receiver, if the component chose it with `emit_direct`."""


class BatchEmission(NamedTuple):
    """A record batch that a `BatchBolt` under test emitted."""

    batch: pyarrow.RecordBatch
    parents: tuple[int, ...]
    """For each row, the row of the input batch that it is anchored to; -1 for none."""
    stream: str = DEFAULT_STREAM


class BatchSpoutEmission(NamedTuple):
    """A record batch that a `BatchSpout` under test emitted."""

    batch: pyarrow.RecordBatch
    message_ids: tuple[Any, ...]
    """The message id of each row; None for one that isn't tracked."""
    stream: str = DEFAULT_STREAM


class CapturedTuple(NamedTuple):
    """A tuple that was emitted in a running topology."""

    component: str
    """The component that emitted it."""
    stream: str
    task: int
    """The task that emitted it."""
    values: tuple[Any, ...]


class CapturedOutcome(NamedTuple):
    """An ack or a fail that reached a `BaseRichSpout` of a running topology."""

    component: str
    """The spout."""
    task: int
    message_id: Any
    latency_ms: float | None
    """From emit to ack or fail; None without ackers."""
