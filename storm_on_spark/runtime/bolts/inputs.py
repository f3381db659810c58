"""What a bolt's task executes: tuples that arrived together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from storm_on_spark.api.tuple import Delivery
from storm_on_spark.runtime.bolts.collectors import Ledger
from storm_on_spark.runtime.tracking.lineage import InputLineage
from storm_on_spark.runtime.values.batches import to_rows


class Input(NamedTuple):
    """Tuples that arrived together: rows of values, or a record batch for a `BatchBolt`."""

    delivery: Delivery
    rows: Any
    size: int


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
