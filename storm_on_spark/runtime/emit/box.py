"""Boxes: the tuples of one stream from one task to another, until they become a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.runtime.run.wiring import StreamInfo
from storm_on_spark.runtime.tracking.lineage import Anchor
from storm_on_spark.runtime.values.rows import Columns

Destination = tuple[Callable[[Any], None], Callable[[Any], None], int, Any]
"""What an emit needs: add the values to a box, add the anchor, the target task; and the text by which it was found."""


class Outbox:
    """The tuples of one stream from one task to one target task, in emit order.

    The values of all tuples are in one list, one tuple after the other: a column is every n-th of them. To keep a row
    for each tuple takes longer, mostly in Python's garbage collector.
    """

    __slots__ = ("anchors", "batches", "destination", "kind", "stream", "target", "values")

    def __init__(self, stream: StreamInfo, target: int, kind: EdgeKind) -> None:
        self.stream = stream
        self.target = target
        self.kind = kind
        #: Both lists live as long as the box, so that their methods can be looked up once.
        self.values: list[Any] = []
        #: One for each tuple.
        self.anchors: list[Anchor] = []
        #: Adds the values of a tuple; the value itself if there is one field.
        add = self.values.append if len(stream.fields) == 1 else self.values.extend
        self.destination: Destination = (add, self.anchors.append, target, None)
        #: What a `BatchBolt` emitted, with an anchor for each row. A box holds either values or batches.
        self.batches: list[tuple[pa.RecordBatch, NDArray[np.int64]]] = []

    def put(self, row: tuple[Any, ...], anchor: Anchor) -> None:
        """Adds a tuple."""
        self.values.extend(row)
        self.anchors.append(anchor)

    def take(self) -> tuple[Columns, list[Anchor]]:
        """Returns the tuples and their anchors, and empties the box of them."""
        width, anchors = len(self.stream.fields), self.anchors.copy()
        columns = Columns([self.values[field::width] for field in range(width)], len(anchors))
        self.values.clear()
        self.anchors.clear()
        return columns, anchors

    def truncate(self, tuples: int, batches: int) -> None:
        """Keeps the given numbers of tuples and batches, and removes what came after them."""
        del self.values[tuples * len(self.stream.fields) :]
        del self.anchors[tuples:]
        del self.batches[batches:]

    def count(self) -> int:
        """Returns how many tuples are in the box."""
        if self.batches:
            return sum([len(anchors) for _, anchors in self.batches])
        return len(self.anchors)
