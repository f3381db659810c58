"""What a bolt's task executes, tuples that arrived together, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.metrics.registry import Reading
from storm_on_spark.api.tuple import Delivery
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.runtime.bolts.collectors import Ledger
from storm_on_spark.runtime.emit.output import Sealed, Sent
from storm_on_spark.runtime.tracking.fold import Fold
from storm_on_spark.runtime.tracking.lineage import InputLineage
from storm_on_spark.runtime.values.batches import to_rows


class Input(NamedTuple):
    """Tuples that arrived together: rows of values, or a record batch for a `BatchBolt`."""

    delivery: Delivery
    rows: Any
    size: int


@dataclass
class Execution:
    """The result of executing one micro-batch."""

    sealed: list[Sealed] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    executed: int = 0
    acked: int = 0
    failed: int = 0
    sent: dict[str, Sent] = field(default_factory=dict)
    """By stream."""
    seconds: float = 0.0
    errors: list[ComponentError] = field(default_factory=list)
    written: bytes = b""
    """What a `SinkBolt` hands over to the driver."""
    registered: tuple[Reading, ...] = ()
    """What the metrics that the bolt registered have to say."""
    amounts: dict[Name, int] = field(default_factory=dict)


def taken_in(inputs: Sequence[Input], ledger: Ledger) -> InputLineage:
    """Adds the deliveries to an execution."""
    offset, now = 0, time.time()
    for delivery, _, size in inputs:
        delivery.execution = ledger.execution
        delivery.offset = offset
        delivery.received = now
        offset += size
    return InputLineage([(delivery, size) for delivery, _, size in inputs])


def rows_between(inputs: Sequence[Input], start: int, stop: int | None) -> Any:
    """Yields (delivery, first position, rows) for the tuples from `start` up to `stop`."""
    for delivery, rows, size in inputs:
        first = max(0, start - delivery.offset)
        last = size if stop is None else min(size, stop - delivery.offset)
        if first == 0 and last == size:
            yield delivery, 0, rows
        elif first < last:
            yield delivery, first, rows[first:last]


def not_taken_whole(parts: Any, bolt: Any, ledger: Ledger, *, watched: bool) -> Any:
    """Yields (delivery, first position, rows) for the tuples that a sink does not take as columns; it acks the others.

    Args:
        parts: as `rows_between` yields them; rows may be record batches.
        bolt: the instance; only a `SinkBolt` gets record batches.
        ledger: of the execution.
        watched: whether hooks want to see each tuple.
    """
    for delivery, first, rows in parts:
        if not isinstance(rows, pa.RecordBatch):
            yield delivery, first, rows
        elif not watched and bolt.take_batch(rows):
            begin = delivery.offset + first
            ledger.acked += range(begin, begin + rows.num_rows)
        else:
            yield delivery, first, to_rows(rows)
