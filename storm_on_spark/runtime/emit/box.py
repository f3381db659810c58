"""Boxes: the tuples of one stream from one task to another, until they become a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.runtime.codec.texts import TextNumbers
from storm_on_spark.runtime.run.wiring import StreamInfo
from storm_on_spark.runtime.tracking.lineage import Anchor
from storm_on_spark.runtime.values.rows import Columns

Destination = tuple[Callable[[Any], None], Callable[[Any], None], int]
"""The parts of a box that an emit needs: append values, append anchor, the target task."""


class Outbox:
    """The tuples of one stream from one task to one target task, in emit order."""

    __slots__ = ("anchors", "bare", "batches", "destination", "kind", "numbers", "stream", "target", "values")

    def __init__(self, stream: StreamInfo, target: int, kind: EdgeKind, numbers: Sequence[TextNumbers]) -> None:
        self.stream = stream
        self.target = target
        self.kind = kind
        #: Of the texts in each field; all boxes of a stream share them.
        self.numbers = numbers
        #: Whether `values` has the values themselves, not rows of them, for there is one field.
        self.bare = len(stream.fields) == 1
        #: Both lists live as long as the box, so that their `append` can be looked up once.
        self.values: list[Any] = []
        #: Runs parallel to `values`.
        self.anchors: list[Anchor] = []
        #: The parts that an emit needs, looked up once.
        self.destination: Destination = (self.values.append, self.anchors.append, target)
        #: What a `BatchBolt` emitted, with an anchor for each row. A box holds either values or batches.
        self.batches: list[tuple[pa.RecordBatch, NDArray[np.int64]]] = []

    def put(self, row: tuple[Any, ...], anchor: Anchor) -> None:
        """Adds a tuple."""
        self.values.append(row[0] if self.bare else row)
        self.anchors.append(anchor)

    def take(self) -> tuple[Sequence[tuple[Any, ...]], list[Anchor]]:
        """Returns the tuples and their anchors, and empties the box of them."""
        values, anchors = self.values.copy(), self.anchors.copy()
        self.values.clear()
        self.anchors.clear()
        return Columns([values], len(values)) if self.bare else values, anchors

    def count(self) -> int:
        """Returns how many tuples are in the box."""
        return len(self.values) + sum(len(anchors) for _, anchors in self.batches)
