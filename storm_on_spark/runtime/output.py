"""Where a task's emitted tuples go until its execution ends.

`TaskOutput` belongs to one task. An emit picks target tasks by the grouping of every subscription and appends the
values to one `Outbox` per target. When the execution ends, `seal` turns the boxes into what travels on, with edge ids
drawn for all tuples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.grouping import DirectGrouping
from storm_on_spark.plan.model import Delivery
from storm_on_spark.runtime.batch_routing import split_batch
from storm_on_spark.runtime.hashing import mix64
from storm_on_spark.runtime.ids import EdgeIds, EdgeRange
from storm_on_spark.runtime.key_cache import LIMIT
from storm_on_spark.runtime.lineage import Anchor, PackedLineage, Roots, resolve
from storm_on_spark.runtime.routing import Router, Slot
from storm_on_spark.runtime.rows import Columns
from storm_on_spark.runtime.texts import TextNumbers
from storm_on_spark.runtime.wiring import StreamInfo, Subscription, Wiring


class Outbox:
    """The tuples of one stream from one task to one target task, in emit order."""

    __slots__ = ("anchors", "bare", "batches", "delivery", "numbers", "slot", "stream", "target", "values")

    def __init__(self, stream: StreamInfo, target: int, delivery: Delivery, numbers: Sequence[TextNumbers]) -> None:
        self.stream = stream
        self.target = target
        self.delivery = delivery
        #: Of the texts in each field; all boxes of a stream share them.
        self.numbers = numbers
        #: Whether `values` has the values themselves, not rows of them, for there is one field.
        self.bare = len(stream.fields) == 1
        #: Both lists live as long as the box, so that their `append` can be looked up once.
        self.values: list[Any] = []
        #: Runs parallel to `values`.
        self.anchors: list[Anchor] = []
        #: What an emit to this box needs, looked up once.
        self.slot: Slot = (self.values.append, self.anchors.append, target)
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


class Sealed(NamedTuple):
    """A box that travels: values with their roots and edges, which are None for unanchored ones."""

    box: Outbox
    values: Any
    """Rows, or a record batch."""
    roots: Roots | None
    edges: EdgeRange | None

    def lineage(self) -> PackedLineage | None:
        """Returns the lineage of tuples that stay in this process."""
        roots, edges = self.roots, self.edges
        return None if roots is None or edges is None else PackedLineage(lambda: roots, edges.ids)


Emit = Callable[[Sequence[Any], Anchor], list[int]]

OutputMark = tuple[list[tuple[int, int]], dict[str, int]]


class _StreamOutput:
    """The boxes of one stream and the ways into them."""

    __slots__ = ("arity", "boxes", "by_task", "emit", "info", "routers")

    def __init__(self, output: TaskOutput, info: StreamInfo, subscriptions: Sequence[Subscription]) -> None:
        self.info = info
        self.arity = len(info.fields)
        self.boxes: list[Outbox] = []
        self.by_task: dict[int, Outbox] = {}
        self.routers: list[Router] = []
        numbers = [TextNumbers() for _ in info.fields]
        for subscription in subscriptions:
            boxes = [Outbox(info, task, subscription.delivery, numbers) for task in subscription.tasks]
            self.boxes += boxes
            self.by_task.update((box.target, box) for box in boxes)
            if not isinstance(subscription.grouping, DirectGrouping):
                self.routers.append(Router(output.context, info, subscription.grouping, boxes))
        self.emit: Emit = _make_emit(output, self)


class TaskOutput:
    """All output of one task.

    Args:
        wiring: the tables of the plan.
        context: the task's context; custom groupings are prepared with it.
    """

    def __init__(self, wiring: Wiring, context: TopologyContext) -> None:
        self.context = context
        self.component = context.this_component_id
        self.task = context.this_task_id
        #: Tuples emitted in this execution, by stream; without those of `_counted_by_box`.
        self.emitted: dict[str, int] = {}
        self._streams = {
            info.stream: _StreamOutput(self, info, wiring.subscriptions(self.component, info.stream))
            for info in wiring.streams_of(self.component)
        }
        #: By stream, the function that routes a tuple: (values, anchor) -> tasks.
        self.emits = _Emits(self, {stream: out.emit for stream, out in self._streams.items()})
        self._seed = 0
        self._resets = [r.reset for out in self._streams.values() for r in out.routers if r.reset is not None]

    def begin(self, seed: int) -> None:
        """Starts an execution; the same seed gives the same choices among equal targets."""
        self.emitted = {}
        self._seed = mix64(seed ^ self.task)
        for reset in self._resets:
            reset(self._seed)

    def emit_direct(self, task: int, stream: str, values: Sequence[Any], anchor: Anchor) -> None:
        """Sends one tuple to `task`, which must subscribe to the direct stream.

        Raises:
            TupleError: the stream is not declared or not direct, the values don't fit, or the task doesn't subscribe.
        """
        out = self._streams.get(stream)
        if out is None or len(values) != out.arity or not out.info.direct or isinstance(values, str):
            raise self.refusal(stream, values, direct=True)
        box = out.by_task.get(task)
        if box is None:
            valid = ", ".join(map(str, sorted(out.by_task))) or "none"
            raise TupleError(
                f'"{self.component}" (task {self.task}) emitted directly to task {task} on stream "{stream}", '
                f"but that task does not subscribe to it; subscribed tasks: {valid}"
            )
        box.put(tuple(values), anchor)
        self.emitted[stream] = self.emitted.get(stream, 0) + 1

    def emit_batch(self, stream: str, batch: pa.RecordBatch, anchors: NDArray[np.int64]) -> None:
        """Routes the rows of a record batch; `anchors[i]` is the input position that row i is anchored to, or -1.

        Raises:
            TupleError: the stream is not declared or is direct, or the columns don't fit its fields.
        """
        out = self._streams.get(stream)
        if out is None or out.arity != batch.num_columns or out.info.direct:
            raise self.refusal(stream, [None] * batch.num_columns, direct=False)
        if batch.schema.names != list(out.info.fields):
            names, fields = (", ".join(f'"{name}"' for name in part) for part in (batch.schema.names, out.info.fields))
            raise TupleError(
                f'"{self.component}" (task {self.task}) emitted a batch of columns {names}, not {fields}, '
                f'on stream "{stream}"; rename or select its columns'
            )
        if batch.num_rows == 0:
            return
        # Every subscription chooses before any box is touched, for a choice may raise.
        shares = [share for router in out.routers for share in split_batch(router, batch)]
        for box, rows, source in shares:
            if rows is None:
                box.batches.append((source, anchors))
            elif len(rows):
                box.batches.append((source.take(pa.array(rows)), anchors[rows]))
        self.emitted[stream] = self.emitted.get(stream, 0) + batch.num_rows

    def texts(self, stream: str) -> Mapping[str, tuple[Any, ...]] | None:
        """Returns `Router.texts` of a stream where a tuple goes into one box and nowhere else."""
        out = self._streams.get(stream)
        return out.routers[0].texts if out is not None and _counted_by_box(out) else None

    def check(self, stream: str, values: Sequence[Any], *, direct: bool) -> None:
        """Checks an emit without making it; which tasks there are does not matter.

        Raises:
            TupleError: as `emit` or `emit_direct`.
        """
        out = self._streams.get(stream)
        fits = out is not None and len(values) == out.arity and out.info.direct is direct
        if not fits or isinstance(values, str):
            raise self.refusal(stream, values, direct=direct)

    def refusal(self, stream: str, values: Sequence[Any], direct: bool) -> TupleError:
        """Returns the error for an emit that does not fit its stream."""
        who = f'"{self.component}" (task {self.task})'
        out = self._streams.get(stream)
        if out is None:
            known = ", ".join(f'"{name}"' for name in sorted(self._streams)) or "none"
            return TupleError(f'{who} emitted to stream "{stream}", which it does not declare; declared: {known}')
        if isinstance(values, str):
            return TupleError(f'{who} emitted the text {values!r} on stream "{stream}"; emit a list of values: [value]')
        if len(values) != out.arity:
            fields = ", ".join(out.info.fields) or "no fields"
            return TupleError(
                f'{who} emitted {len(values)} value(s) on stream "{stream}", '
                f"which declares {out.arity} ({fields}): {list(values)!r:.200}"
            )
        wanted, used = ("emit", "emit_direct") if direct else ("emit_direct", "emit")
        kind = "not a direct stream" if direct else "a direct stream"
        return TupleError(f'{who} used {used} on stream "{stream}", which is {kind}; use {wanted}')

    def mark(self) -> OutputMark:
        """Returns what has been emitted so far, for `truncate`."""
        boxes = (box for out in self._streams.values() for box in out.boxes)
        return [(len(box.values), len(box.batches)) for box in boxes], dict(self.emitted)

    def truncate(self, mark: OutputMark) -> None:
        """Forgets what was emitted since `mark`."""
        boxes = (box for out in self._streams.values() for box in out.boxes)
        for box, (values, batches) in zip(boxes, mark[0], strict=True):
            del box.values[values:]
            del box.anchors[values:]
            del box.batches[batches:]
        self.emitted = dict(mark[1])
        for reset in self._resets:
            reset(self._seed)

    def count(self) -> dict[str, int]:
        """Returns how many tuples have been emitted in this execution, by stream; ask before `seal`."""
        counts = dict(self.emitted)
        for stream, out in self._streams.items():
            if _counted_by_box(out):
                counts[stream] = counts.get(stream, 0) + sum(len(box.values) for box in out.boxes)
        return {stream: count for stream, count in counts.items() if count}

    def seal(self, input_roots: Callable[[], Roots], ids: EdgeIds) -> Iterator[Sealed]:
        """Yields the boxes that hold something and empties them.

        Args:
            input_roots: returns the root of each input tuple (uint64, or a list of ints and tuples), a zero behind the
                last.
            ids: where the edge ids come from.
        """

        def sealed(box: Outbox, values: Any, size: int, anchors: Sequence[Anchor] | NDArray[np.int64]) -> Sealed:
            roots = resolve(anchors, input_roots())
            return Sealed(box, values, roots, None if roots is None else ids.take(size))

        for out in self._streams.values():
            for box in out.boxes:
                if box.values:
                    values, anchors = box.take()
                    yield sealed(box, values, len(values), anchors)
                batches, box.batches = box.batches, []
                for batch, positions in _joined(batches):
                    yield sealed(box, batch, batch.num_rows, positions)


class _Emits(dict[str, "Emit"]):
    """The emit functions by stream; an unknown stream is refused with a sentence."""

    def __init__(self, output: TaskOutput, emits: dict[str, Emit]) -> None:
        super().__init__(emits)
        self._output = output

    def __missing__(self, stream: str) -> Emit:
        raise self._output.refusal(stream, (), direct=False)


def _counted_by_box(out: _StreamOutput) -> bool:
    """Whether each tuple of a stream goes into exactly one box, so that the boxes say how many there were."""
    return len(out.routers) == 1 and out.routers[0].single and not out.info.direct


def _make_emit(output: TaskOutput, out: _StreamOutput) -> Emit:
    """Returns the function that routes one tuple of a stream, in the shortest form that its subscriptions allow.

    It is called once for every tuple that a topology emits; the common case, one subscription with one target a tuple,
    takes 0.4 µs, half of what a single function for all cases took.
    """
    stream, arity = out.info.stream, out.arity

    if out.info.direct:

        def refuse(values: Sequence[Any], anchor: Anchor) -> list[int]:
            raise output.refusal(stream, values, direct=False)

        return refuse

    pickers = [router.pick for router in out.routers]

    if arity == 1 and _counted_by_box(out):
        pick, pick_value = out.routers[0].pick, out.routers[0].pick_value
        texts, known = out.routers[0].texts, out.routers[0].known

        def emit_value(values: Sequence[Any], anchor: Anchor) -> list[int]:
            try:
                (value,) = values
            except (TypeError, ValueError):
                raise output.refusal(stream, values, direct=False) from None
            if values.__class__ is str:
                raise output.refusal(stream, values, direct=False)
            try:
                ((put, tie, task),) = pick_value(value)
            except TypeError:
                ((put, tie, task),) = pick((value,))  # which says what is wrong with the value
            put(value)
            tie(anchor)
            return [task]

        if texts is None or known is None:
            return emit_value
        of_int = known.of_int

        def emit_text(values: Sequence[Any], anchor: Anchor) -> list[int]:
            try:
                (value,) = values
            except (TypeError, ValueError):
                return emit_value(values, anchor)  # which says what is wrong with them
            if values.__class__ is str:
                return emit_value(values, anchor)
            if value.__class__ is str:
                # One object for equal texts: two million others would be kept until the micro-batch ends.
                put, tie, task, value = texts[value]
            elif value.__class__ is int:
                ((put, tie, task),) = known[value] if len(known) < LIMIT else of_int(value)
            else:
                return emit_value((value,), anchor)
            put(value)
            tie(anchor)
            return [task]

        return emit_text

    def emit(values: Sequence[Any], anchor: Anchor) -> list[int]:
        row = tuple(values)
        if len(row) != arity or values.__class__ is str:
            raise output.refusal(stream, values, direct=False)
        # Every subscription chooses before any box is touched, for a choice may raise.
        slots = [slot for pick in pickers for slot in pick(row)]
        value = row[0] if arity == 1 else row
        for put, tie, _ in slots:
            put(value)
            tie(anchor)
        output.emitted[stream] = output.emitted.get(stream, 0) + 1
        return [task for _, _, task in slots]

    return emit


def _joined(
    batches: Sequence[tuple[pa.RecordBatch, NDArray[np.int64]]],
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yields neighbours as one batch each, as far as their types agree and Arrow can hold them in one."""
    for _, group in groupby(batches, key=lambda item: item[0].schema):
        parts = list(group)
        positions = np.concatenate([anchors for _, anchors in parts])
        done = 0
        for batch in pa.Table.from_batches([part for part, _ in parts]).combine_chunks().to_batches():
            yield batch, positions[done : done + batch.num_rows]
            done += batch.num_rows
