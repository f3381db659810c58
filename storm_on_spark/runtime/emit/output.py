"""The output of a task: its emitted tuples, until its execution ends.

`TaskOutput` belongs to one task. An emit picks target tasks by the grouping of every subscription and appends the
values to one `Outbox` per target. When the execution ends, `seal` turns the boxes into what travels on, with edge ids
drawn for all tuples at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.grouping import AllGrouping, DirectGrouping
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.runtime.emit.batch_routing import split_batch
from storm_on_spark.runtime.emit.box import Outbox
from storm_on_spark.runtime.emit.key_cache import LIMIT
from storm_on_spark.runtime.emit.routing import Owners, Router
from storm_on_spark.runtime.run.wiring import StreamInfo, Subscription, Wiring
from storm_on_spark.runtime.tracking.ids import EdgeIds, EdgeRange
from storm_on_spark.runtime.tracking.lineage import Anchor, PackedLineage, Roots, resolve
from storm_on_spark.runtime.values.frozen import CONSTANT, FrozenRows, freeze, owned
from storm_on_spark.runtime.values.hashing import mix64


class Sealed(NamedTuple):
    """The contents of a box: values with their roots and edges, which are None for unanchored tuples."""

    box: Outbox
    values: Any
    """Rows, or a record batch."""
    roots: Roots | None
    edges: EdgeRange | None
    plain: bool = True
    """Whether all values are of types that can't be changed in place, and so can be pickled."""

    def lineage(self) -> PackedLineage | None:
        """Returns the lineage of tuples that stay in this process."""
        roots, edges = self.roots, self.edges
        return None if roots is None or edges is None else PackedLineage(lambda: roots, edges.ids)


Emit = Callable[[Sequence[Any], Anchor], list[int]]

OutputMark = tuple[list[tuple[int, int]], list[int]]


class Sent(NamedTuple):
    """The counters of one stream in an execution, as Storm counts tuples."""

    emitted: int
    """Each tuple once, however many tasks received it."""
    transferred: int
    """Each tuple once for every task that received it."""


class _StreamOutput:
    """The boxes of one stream and the functions that route to them."""

    __slots__ = (
        "arity",
        "boxes",
        "by_task",
        "counted_by_emit",
        "counting_boxes",
        "emit",
        "frozen",
        "info",
        "mixed",
        "routers",
    )

    def __init__(self, output: TaskOutput, info: StreamInfo, subscriptions: Sequence[Subscription]) -> None:
        self.info = info
        self.arity = len(info.fields)
        self.boxes: list[Outbox] = []
        self.by_task: dict[int, Outbox] = {}
        self.routers: list[Router] = []
        for subscription in subscriptions:
            boxes = [Outbox(info, task, subscription.kind) for task in subscription.tasks]
            self.boxes += boxes
            self.by_task.update((box.target, box) for box in boxes)
            if not isinstance(subscription.grouping, DirectGrouping):
                self.routers.append(Router(output.context, info, subscription.grouping, boxes))
        #: Boxes that count emitted tuples: each tuple enters exactly one of them. If None, `emit` counts.
        self.counting_boxes: list[Outbox] | None = self._counting_boxes()
        #: Tuples emitted in this execution, where `counting_boxes` is None; 0 elsewhere.
        self.counted_by_emit = 0
        #: Whether a box may hold frozen values, or others that aren't of a constant type.
        self.frozen = self.mixed = False
        self.emit: Emit = _make_emit(output, self)

    def _counting_boxes(self) -> list[Outbox] | None:
        if self.info.direct:
            return self.boxes
        for router in self.routers:
            if router.choose is not None:
                # The same boxes, in any order, if there is no other router: `sent` counts them once then.
                return self.boxes if len(router.boxes) == len(self.boxes) else router.boxes
            if isinstance(router.grouping, AllGrouping):
                return router.boxes[:1]
        return None

    @property
    def only(self) -> Router | None:
        """The router that chooses the one box into which a tuple goes; None where there may be more or fewer boxes."""
        return self.routers[0] if len(self.routers) == 1 and self.routers[0].choose and not self.info.direct else None

    @property
    def owners(self) -> Owners | None:
        """Where a tuple is one value and goes into one box, which that value chooses: the destinations by value."""
        return self.only.owners if self.arity == 1 and self.only else None

    def constant(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns a row that stays what it is, whatever is done to its values.

        A value that can't be pickled can't be kept so: a receiver in the same process gets the object itself, and to
        another process it can't go.
        """
        if not self.boxes:
            return row
        found = freeze(row)
        self.mixed = True
        self.frozen |= found is not row
        return found

    def sent(self) -> Sent:
        """Returns the number of tuples in this execution."""
        transferred = sum([box.count() for box in self.boxes])
        if self.counting_boxes is self.boxes:
            return Sent(transferred, transferred)
        return Sent(
            self.counted_by_emit if self.counting_boxes is None else sum([box.count() for box in self.counting_boxes]),
            transferred,
        )


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
        for out in self._streams.values():
            out.counted_by_emit, out.frozen, out.mixed = 0, False, False
        if self._resets:
            self._seed = mix64(mix64(seed) ^ self.task)
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
        box.put(out.constant(tuple(values)), anchor)

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
        if any(pa.types.is_dictionary(kind) for kind in batch.schema.types):
            batch = owned(batch)  # `take` copies the numbers of texts, not the texts
        shares = [share for router in out.routers for share in split_batch(router, batch)]
        whole: pa.RecordBatch | None = None
        for box, rows, source in shares:
            if rows is None:
                whole = owned(batch) if whole is None else whole
                box.batches.append((whole, anchors))
            elif len(rows):
                box.batches.append((source.take(pa.array(rows)), anchors[rows]))
        if out.counting_boxes is None:
            out.counted_by_emit += batch.num_rows

    def owners(self, stream: str) -> Owners | None:
        """Returns the destinations by value of a stream of single values that choose the one box they go into."""
        out = self._streams.get(stream)
        return None if out is None else out.owners

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
        """Returns a mark of the output so far, for `truncate`."""
        outs = self._streams.values()
        return [(len(box.anchors), len(box.batches)) for out in outs for box in out.boxes], [
            out.counted_by_emit for out in outs
        ]

    def truncate(self, mark: OutputMark | None) -> None:
        """Removes what was emitted since `mark`; all of this execution for None."""
        boxes = [box for out in self._streams.values() for box in out.boxes]
        sizes, counted = mark or ([(0, 0)] * len(boxes), [0] * len(self._streams))
        for box, (tuples, batches) in zip(boxes, sizes, strict=True):
            box.truncate(tuples, batches)
        for out, counted_by_emit in zip(self._streams.values(), counted, strict=True):
            out.counted_by_emit = counted_by_emit
        for reset in self._resets:
            reset(self._seed)

    def sent(self) -> dict[str, Sent]:
        """Returns how many tuples there are in this execution, by stream; call it before `seal`."""
        counts = {stream: out.sent() for stream, out in self._streams.items()}
        return {stream: count for stream, count in counts.items() if count.emitted}

    def seal(self, input_roots: Callable[[], Roots], ids: EdgeIds) -> Iterator[Sealed]:
        """Yields the boxes that are not empty, and empties them.

        Args:
            input_roots: returns the root of each input tuple (uint64, or a list of ints and tuples), a zero behind the
                last.
            ids: where the edge ids come from.
        """
        for out in self._streams.values():
            frozen, plain, out.counted_by_emit, out.frozen, out.mixed = out.frozen, not out.mixed, 0, False, False
            for box in out.boxes:
                if box.anchors:
                    values, anchors = box.take()
                    roots = resolve(anchors, input_roots())
                    edges = None if roots is None else ids.take(len(anchors))
                    yield Sealed(box, FrozenRows(values) if frozen else values, roots, edges, plain)
                if box.batches:
                    batches, box.batches = box.batches, []
                    for batch, positions in _concatenated(batches):
                        roots = resolve(positions, input_roots())
                        edges = None if roots is None else ids.take(batch.num_rows)
                        yield Sealed(box, batch, roots, edges, plain)


class _Emits(dict[str, "Emit"]):
    """The emit functions by stream; an unknown stream is refused with a sentence."""

    def __init__(self, output: TaskOutput, emits: dict[str, Emit]) -> None:
        super().__init__(emits)
        self._output = output

    def __missing__(self, stream: str) -> Emit:
        raise self._output.refusal(stream, (), direct=False)


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

    if (owners := out.owners) is not None:
        of, of_int = owners.of, owners.of_int

        def emit_key(values: Sequence[Any], anchor: Anchor) -> list[int]:
            try:
                (value,) = values
            except (TypeError, ValueError):
                raise output.refusal(stream, values, direct=False) from None
            if value.__class__ is str:
                if values.__class__ is str:
                    raise output.refusal(stream, values, direct=False)
                # One object for equal texts: two million others would be kept until the micro-batch ends.
                put, tie, task, value = owners[value]
            elif value.__class__ is int:
                put, tie, task, _ = owners[value] if len(owners) < LIMIT else of_int(value)
            else:
                put, tie, task, _ = of(value)
                if type(value) not in CONSTANT:
                    (value,) = out.constant((value,))
            put(value)
            tie(anchor)
            return [task]

        return emit_key

    bare = arity == 1

    if (only := out.only) is not None:
        choose = only.choose
        assert choose is not None

        def emit_row(values: Sequence[Any], anchor: Anchor) -> list[int]:
            row = tuple(values)
            if len(row) != arity or values.__class__ is str:
                raise output.refusal(stream, values, direct=False)
            put, tie, task, _ = choose(row)
            for value in row:
                if type(value) not in CONSTANT:
                    row = out.constant(row)
                    break
            put(row[0] if bare else row)
            tie(anchor)
            return [task]

        return emit_row

    pickers = [router.pick for router in out.routers]
    counts = out.counting_boxes is None

    def emit(values: Sequence[Any], anchor: Anchor) -> list[int]:
        row = tuple(values)
        if len(row) != arity or values.__class__ is str:
            raise output.refusal(stream, values, direct=False)
        # Every subscription chooses before any box is touched, for a choice may raise.
        destinations = [destination for pick in pickers for destination in pick(row)]
        for value in row:
            if type(value) not in CONSTANT:
                row = out.constant(row)
                break
        value = row[0] if bare else row
        for put, tie, _, _ in destinations:
            put(value)
            tie(anchor)
        if counts:
            out.counted_by_emit += 1
        return [task for _, _, task, _ in destinations]

    return emit


def _concatenated(
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
