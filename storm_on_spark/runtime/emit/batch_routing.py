"""Routing of the rows of a record batch. A key goes to the same task as in `routing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.custom_grouping import CustomGrouping
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
)
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.runtime.codec.arrow_texts import with_numbers
from storm_on_spark.runtime.emit.box import Outbox
from storm_on_spark.runtime.emit.routing import Router

RoutedRows = tuple[Outbox, "NDArray[np.int64] | None", pa.RecordBatch]
"""A box, the positions of the rows that go into it (None for all of them), and the batch to take them from."""

_FEW_BOXES = 8
"""Number of boxes up to which a search for the rows of each is cheaper than sorting."""


def split_batch(router: Router, batch: pa.RecordBatch) -> Iterable[RoutedRows]:
    """Returns the shares of a batch's rows, each in the order of the batch.

    Raises:
        TupleError: a value can't be grouped by, or a custom grouping raised.
    """
    grouping, boxes = router.grouping, router.boxes
    if isinstance(grouping, AllGrouping):
        return [(box, None, batch) for box in boxes]
    if isinstance(grouping, GlobalGrouping) or (len(boxes) == 1 and not isinstance(grouping, CustomGrouping)):
        return [(boxes[0], None, batch)]
    if grouping.any_task:
        return _in_turn(router, batch)
    if isinstance(grouping, FieldsGrouping) and len(grouping.fields) == 1:
        return _by_field(router, batch)
    return _by_row(router, batch)


def _in_turn(router: Router, batch: pa.RecordBatch) -> Iterator[RoutedRows]:
    boxes = router.boxes
    count = len(boxes)
    # Continue with the task after the last one of the previous batch, so that small batches are spread evenly too.
    first = router.destinations.index(router.pick(())[0])
    for _ in range((batch.num_rows - 1) % count):
        router.pick(())
    for shift in range(count):
        yield boxes[(first + shift) % count], np.arange(shift, batch.num_rows, count), batch


def _by_field(router: Router, batch: pa.RecordBatch) -> Iterable[RoutedRows]:
    # Each distinct value is looked up once; the rest is arithmetic on dictionary codes.
    position = router.positions()[0]
    column = batch.column(position)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()  # nulls may be among its indices or among its values
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        return _by_row(router, batch)  # lists and the like: whether they can be grouped by is for the hash to say
    values = _values(router, encoded.dictionary, position)
    assert router.owners is not None
    owner = np.array(router.owners.places(values), np.uint16)
    targets = owner[encoded.indices.to_numpy(zero_copy_only=False)]
    numbered = with_numbers(batch, position, encoded)
    return [
        (box, rows, batch if box.kind is EdgeKind.LOCAL else numbered)
        for box, rows in zip(router.boxes, _rows_of(targets, len(router.boxes)), strict=True)
    ]


def _values(router: Router, column: pa.Array, position: int) -> list[Any]:
    """Returns a column as Python's values.

    Raises:
        TupleError: Python has no such value, say a time in the year 10000.
    """
    try:
        found: list[Any] = column.to_pylist()
    except Exception as error:
        raise router.unread(router.info.fields[position], error) from error
    return found


def _rows_of(targets: NDArray[np.uint16], count: int) -> Iterator[NDArray[np.int64]]:
    """Yields, for each box, the rows that go into it."""
    if count <= _FEW_BOXES:
        for index in range(count):
            yield np.flatnonzero(targets == index)
        return
    order = np.argsort(targets, kind="stable")  # of 16 bits: a radix sort
    yield from np.split(order, np.cumsum(np.bincount(targets, minlength=count))[:-1])


def _by_row(router: Router, batch: pa.RecordBatch) -> Iterator[RoutedRows]:
    by_task = {box.target: box for box in router.boxes}
    rows: dict[int, list[int]] = {}
    columns = [_values(router, column, position) for position, column in enumerate(batch.columns)]
    for position, values in enumerate(zip(*columns, strict=True)):
        for _, _, task, _ in router.pick(values):
            rows.setdefault(task, []).append(position)
    for task, positions in rows.items():
        yield by_task[task], np.array(positions, dtype=np.int64), batch
