"""Where a task's emitted tuples go until its execution ends.

`TaskOutput` belongs to one task. An emit picks target tasks by the grouping of every subscription and appends the
values to one `Outbox` per target. When the execution ends, `seal` turns the boxes into what travels on, with edge ids
drawn for all tuples at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.grouping import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams import GlobalStreamId
from storm_on_spark.plan.model import Delivery
from storm_on_spark.runtime.hashing import mix64, stable_hash
from storm_on_spark.runtime.ids import EdgeIds, U64Array
from storm_on_spark.runtime.wiring import StreamInfo, Subscription, Wiring

UNANCHORED = -1
"""Anchor of a tuple without roots. It indexes the zero that stands behind the roots of all input."""

Anchor = int | tuple[int, ...]
"""Position of the input tuple that an emitted one is anchored to, or the root ids themselves."""

_CACHE_LIMIT = 1 << 16


class Outbox:
    """The tuples of one stream from one task to one target task, in emit order."""

    __slots__ = ("anchors", "batches", "delivery", "ragged", "stream", "target", "values")

    def __init__(self, stream: StreamInfo, target: int, delivery: Delivery) -> None:
        self.stream = stream
        self.target = target
        self.delivery = delivery
        self.values: list[tuple[Any, ...]] = []
        #: Runs parallel to `values`.
        self.anchors: list[Anchor] = []
        #: Whether some anchor is given as root ids.
        self.ragged = False
        #: What a `BatchBolt` emitted, with an anchor for each row. A box holds either values or batches.
        self.batches: list[tuple[pa.RecordBatch, NDArray[np.int64]]] = []


class Sealed:
    """A box that travels: values with their roots and edges. `values` may be a record batch."""

    __slots__ = ("box", "edges", "roots", "values")

    def __init__(self, box: Outbox, values: Any, roots: U64Array | list[Any] | None, edges: U64Array | None):
        self.box = box
        self.values = values
        self.roots = roots
        self.edges = edges


Splitter = Callable[[pa.RecordBatch], Iterable[tuple[Outbox, NDArray[np.int64] | None]]]
"""Shares out the rows of a batch: (box, row positions), or (box, None) for all of them."""

Picker = Callable[[tuple[Any, ...]], tuple[Outbox, ...]]


class _StreamOutput:
    """The boxes of one stream and the choice among them."""

    __slots__ = ("arity", "boxes", "by_task", "info", "pick", "pickers", "reset", "split")

    def __init__(self, output: TaskOutput, info: StreamInfo, subscriptions: Sequence[Subscription]) -> None:
        self.info = info
        self.arity = len(info.fields)
        self.boxes: list[Outbox] = []
        self.by_task: dict[int, Outbox] = {}
        self.pickers: list[Picker] = []
        self.reset: list[Callable[[int], None]] = []
        self.split: list[Splitter] = []
        for subscription in subscriptions:
            boxes = [Outbox(info, task, subscription.delivery) for task in subscription.tasks]
            self.boxes += boxes
            self.by_task.update((box.target, box) for box in boxes)
            picker = _make_picker(output, info, subscription, boxes, self.reset)
            if picker is not None:
                self.pickers.append(picker)
                self.split.append(_make_splitter(output, info, subscription.grouping, boxes, picker))
        if not self.pickers:
            self.pick: Picker = _pick_none
        elif len(self.pickers) == 1:
            self.pick = self.pickers[0]
        else:
            self.pick = self._pick_all

    def _pick_all(self, values: tuple[Any, ...]) -> tuple[Outbox, ...]:
        chosen: tuple[Outbox, ...] = ()
        for picker in self.pickers:
            chosen += picker(values)
        return chosen


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
        self._resets = [reset for stream in self._streams.values() for reset in stream.reset]
        #: Tuples emitted in this execution, by stream.
        self.emitted: dict[str, int] = {}

    def begin(self, seed: int) -> None:
        """Starts an execution; the same seed gives the same choices among equal targets."""
        for reset in self._resets:
            reset(mix64(seed ^ self.task))

    def emit(self, stream: str, values: Sequence[Any], anchor: Anchor) -> list[int]:
        """Routes one tuple; returns the tasks that it goes to.

        Raises:
            TupleError: the stream is not declared or is direct, or the values don't fit its fields.
        """
        out = self._streams.get(stream)
        if out is None or len(values) != out.arity or out.info.direct or values.__class__ is str:
            raise self._refusal(stream, values, direct=False)
        row = tuple(values)
        boxes = out.pick(row)
        if anchor.__class__ is int:
            for box in boxes:
                box.values.append(row)
                box.anchors.append(anchor)
        else:
            for box in boxes:
                box.values.append(row)
                box.anchors.append(anchor)
                box.ragged = True
        emitted = self.emitted
        emitted[stream] = emitted.get(stream, 0) + 1
        return [box.target for box in boxes]

    def emit_direct(self, task: int, stream: str, values: Sequence[Any], anchor: Anchor) -> None:
        """Sends one tuple to `task`, which must subscribe to the direct stream.

        Raises:
            TupleError: the stream is not declared or not direct, the values don't fit, or the task doesn't subscribe.
        """
        out = self._streams.get(stream)
        if out is None or len(values) != out.arity or not out.info.direct or isinstance(values, str):
            raise self._refusal(stream, values, direct=True)
        box = out.by_task.get(task)
        if box is None:
            valid = ", ".join(map(str, sorted(out.by_task))) or "none"
            raise TupleError(
                f"{self.component!r} (task {self.task}) emitted directly to task {task} on stream {stream!r}, "
                f"but that task does not subscribe to it; subscribed tasks: {valid}"
            )
        box.values.append(tuple(values))
        box.anchors.append(anchor)
        box.ragged |= not isinstance(anchor, int)
        self.emitted[stream] = self.emitted.get(stream, 0) + 1

    def emit_batch(self, stream: str, batch: pa.RecordBatch, anchors: NDArray[np.int64]) -> None:
        """Routes the rows of a record batch; `anchors[i]` is the input position that row i is anchored to, or -1.

        Raises:
            TupleError: the stream is not declared or is direct, or the columns don't fit its fields.
        """
        out = self._streams.get(stream)
        if out is None or out.arity != batch.num_columns or out.info.direct:
            raise self._refusal(stream, [None] * batch.num_columns, direct=False)
        for split in out.split:
            for box, rows in split(batch):
                if rows is None:
                    box.batches.append((batch, anchors))
                elif len(rows):
                    box.batches.append((batch.take(pa.array(rows)), anchors[rows]))
        self.emitted[stream] = self.emitted.get(stream, 0) + batch.num_rows

    def _refusal(self, stream: str, values: Sequence[Any], direct: bool) -> TupleError:
        who = f"{self.component!r} (task {self.task})"
        out = self._streams.get(stream)
        if out is None:
            known = ", ".join(repr(name) for name in sorted(self._streams)) or "none"
            return TupleError(f"{who} emitted to stream {stream!r}, which it does not declare; declared: {known}")
        if isinstance(values, str):
            return TupleError(f"{who} emitted the text {values!r} on stream {stream!r}; emit a list of values: [value]")
        if len(values) != out.arity:
            fields = ", ".join(out.info.fields) or "no fields"
            return TupleError(
                f"{who} emitted {len(values)} value(s) on stream {stream!r}, "
                f"which declares {out.arity} ({fields}): {list(values)!r:.200}"
            )
        wanted, used = ("emit", "emit_direct") if direct else ("emit_direct", "emit")
        kind = "not a direct stream" if direct else "a direct stream"
        return TupleError(f"{who} used {used} on stream {stream!r}, which is {kind}; use {wanted}")

    def lengths(self) -> list[int]:
        """Returns a mark of what has been emitted so far, for `truncate`."""
        return [len(box.values) or len(box.batches) for stream in self._streams.values() for box in stream.boxes]

    def truncate(self, mark: list[int], emitted: dict[str, int]) -> None:
        """Forgets what was emitted since `mark`."""
        boxes = (box for stream in self._streams.values() for box in stream.boxes)
        for box, length in zip(boxes, mark, strict=True):
            del box.values[length:]
            del box.anchors[length:]
            del box.batches[length:]
        self.emitted = dict(emitted)

    def seal(self, input_roots: U64Array | list[Any], ids: EdgeIds) -> Iterator[Sealed]:
        """Yields the boxes that hold something and empties them.

        Args:
            input_roots: root of each input tuple (uint64, or a list of ints and tuples), a zero behind the last.
            ids: where the edge ids come from.
        """
        for stream in self._streams.values():
            for box in stream.boxes:
                if box.values:
                    values, anchors, ragged = box.values, box.anchors, box.ragged
                    box.values, box.anchors, box.ragged = [], [], False
                    roots = resolve(anchors, input_roots, ragged)
                    yield Sealed(box, values, roots, None if roots is None else ids.take(len(values)))
                if box.batches:
                    batches, box.batches = box.batches, []
                    batch = batches[0][0] if len(batches) == 1 else _concat([part for part, _ in batches])
                    positions = np.concatenate([anchors for _, anchors in batches])
                    roots = resolve(positions, input_roots, False)
                    yield Sealed(box, batch, roots, None if roots is None else ids.take(batch.num_rows))


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if table.num_rows else batches[0]


def resolve(anchors: Sequence[Anchor] | NDArray[np.int64], roots: U64Array | list[Any], ragged: bool) -> U64Array | list[Any] | None:
    """Returns per emitted tuple its roots, or None when all are unanchored."""
    if not ragged and not isinstance(roots, list):
        if len(roots) == 1:
            return None
        found = roots[np.asarray(anchors, dtype=np.int64)]
        return found if found.any() else None
    listed = [roots[a] if isinstance(a, int) else a for a in anchors]
    if all(isinstance(root, (int, np.integer)) for root in listed):
        flat = np.array(listed, dtype=np.uint64)
        return flat if flat.any() else None
    return [root if isinstance(root, tuple) else int(root) for root in listed]


def contributions(roots: U64Array | list[Any], edges: U64Array) -> tuple[U64Array, U64Array]:
    """Returns (roots, edges) with one entry for each root of each tuple."""
    if not isinstance(roots, list):
        anchored = roots != 0
        return (roots, edges) if anchored.all() else (roots[anchored], edges[anchored])
    pairs = [
        (root, edge)
        for tuple_roots, edge in zip(roots, edges.tolist(), strict=True)
        for root in (tuple_roots if isinstance(tuple_roots, tuple) else (tuple_roots,))
        if root
    ]
    flat = np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]


# --- groupings -----------------------------------------------------------------------------------------------------


def _pick_none(values: tuple[Any, ...]) -> tuple[Outbox, ...]:
    return ()


def _make_picker(
    output: TaskOutput,
    info: StreamInfo,
    subscription: Subscription,
    boxes: list[Outbox],
    resets: list[Callable[[int], None]],
) -> Picker | None:
    """Returns the function that chooses boxes for a tuple; None for direct subscriptions, which choose nothing."""
    grouping = subscription.grouping
    if isinstance(grouping, DirectGrouping):
        return None
    if isinstance(grouping, AllGrouping):
        everyone = tuple(boxes)
        return lambda values: everyone
    if isinstance(grouping, GlobalGrouping):
        first = (min(boxes, key=lambda box: box.target),)
        return lambda values: first
    if isinstance(grouping, (ShuffleGrouping, NoneGrouping, LocalOrShuffleGrouping)):
        # Every task of a fused consumer is local, and behind an exchange none is nearer than another.
        return _shuffle(boxes, resets)
    if isinstance(grouping, FieldsGrouping):
        return _by_fields(output, info, grouping, boxes)
    if isinstance(grouping, PartialKeyGrouping):
        return _by_partial_key(output, info, grouping, boxes, resets)
    if isinstance(grouping, CustomGrouping):
        return _custom(output, info, grouping, boxes)
    raise TypeError(f"unknown grouping {type(grouping).__name__}")


def _shuffle(boxes: list[Outbox], resets: list[Callable[[int], None]]) -> Picker:
    single = [(box,) for box in boxes]
    turn = cycle(single)

    def reset(seed: int) -> None:
        nonlocal turn
        start = seed % len(single)
        turn = islice(cycle(single), start, None)

    def pick(values: tuple[Any, ...]) -> tuple[Outbox, ...]:
        return next(turn)

    resets.append(reset)
    return pick


def field_positions(info: StreamInfo, grouping: Grouping) -> list[int]:
    """Returns the positions of the fields that a fields or partial key grouping names."""
    assert isinstance(grouping, (FieldsGrouping, PartialKeyGrouping))
    return [info.fields.index(name) for name in grouping.fields]


def _hash_fields(output: TaskOutput, info: StreamInfo, positions: list[int], values: tuple[Any, ...]) -> int:
    if len(positions) == 1:
        try:
            return stable_hash(values[positions[0]])
        except TypeError as error:
            raise _ungroupable(output, info, positions[0], values, error) from None
    for position in positions:
        try:
            stable_hash(values[position])
        except TypeError as error:
            raise _ungroupable(output, info, position, values, error) from None
    return stable_hash(tuple(values[position] for position in positions))


def _ungroupable(
    output: TaskOutput, info: StreamInfo, position: int, values: tuple[Any, ...], error: TypeError
) -> TupleError:
    return TupleError(
        f"{output.component!r} (task {output.task}) emitted a value for field {list(info.fields)[position]!r} "
        f"of stream {info.stream!r} that can't be grouped by: {error} (given {values[position]!r:.100})"
    )


def _by_fields(output: TaskOutput, info: StreamInfo, grouping: FieldsGrouping, boxes: list[Outbox]) -> Picker:
    # Task index = hash mod number of tasks, over task ids in ascending order, as in Storm's TupleUtils.
    ordered = sorted(boxes, key=lambda box: box.target)
    single = [(box,) for box in ordered]
    positions = field_positions(info, grouping)
    count = len(single)
    # Equal values have equal hashes, so what was looked up once can be kept by value.
    cache: dict[Any, tuple[Outbox, ...]] = {}
    only = positions[0] if len(positions) == 1 else None

    def pick(values: tuple[Any, ...]) -> tuple[Outbox, ...]:
        key = values[only] if only is not None else tuple([values[p] for p in positions])
        try:
            return cache[key]
        except KeyError:
            if len(cache) >= _CACHE_LIMIT:
                cache.clear()
        except TypeError:
            pass  # unhashable: `_hash_fields` says which field it is
        chosen = single[_hash_fields(output, info, positions, values) % count]
        cache[key] = chosen
        return chosen

    return pick


def _by_partial_key(
    output: TaskOutput,
    info: StreamInfo,
    grouping: PartialKeyGrouping,
    boxes: list[Outbox],
    resets: list[Callable[[int], None]],
) -> Picker:
    """Two candidate tasks a key, the one this sender has used less ("the power of both choices", Nasir et al. 2015)."""
    ordered = sorted(boxes, key=lambda box: box.target)
    positions = field_positions(info, grouping)
    count = len(ordered)
    used = [0] * count

    def reset(seed: int) -> None:
        used[:] = [0] * count

    def pick(values: tuple[Any, ...]) -> tuple[Outbox, ...]:
        first_hash = _hash_fields(output, info, positions, values)
        first = first_hash % count
        # The second candidate differs from the first whenever there are two tasks.
        second = (first + 1 + mix64(first_hash) % (count - 1)) % count if count > 1 else first
        chosen = first if used[first] <= used[second] else second
        used[chosen] += 1
        return (ordered[chosen],)

    resets.append(reset)
    return pick


def _custom(output: TaskOutput, info: StreamInfo, grouping: CustomGrouping, boxes: list[Outbox]) -> Picker:
    by_task = {box.target: box for box in boxes}
    # Every task has its own copy, as if the grouping had been shipped to it.
    chooser = copy.deepcopy(grouping.grouping)
    where = f"the custom grouping {type(chooser).__name__} of stream {info.stream!r} from {info.component!r}"
    try:
        chooser.prepare(output.context, GlobalStreamId(info.component, info.stream), sorted(by_task))
    except Exception as error:
        raise TupleError(f"{where} raised in prepare: {type(error).__name__}: {error}") from error

    def pick(values: tuple[Any, ...]) -> tuple[Outbox, ...]:
        try:
            tasks = list(chooser.choose_tasks(output.task, list(values)))
        except Exception as error:
            raise TupleError(f"{where} raised in choose_tasks: {type(error).__name__}: {error}") from error
        try:
            return tuple(by_task[task] for task in tasks)
        except (KeyError, TypeError):
            raise TupleError(f"{where} chose {tasks!r}; valid tasks are {sorted(by_task)}") from None

    return pick


# --- the same for record batches -------------------------------------------------------------------------------------


def _make_splitter(
    output: TaskOutput, info: StreamInfo, grouping: Grouping, boxes: list[Outbox], picker: Picker
) -> Splitter:
    """Returns the function that shares out the rows of a batch; it agrees with `picker` on where a key goes."""
    ordered = sorted(boxes, key=lambda box: box.target)
    if isinstance(grouping, AllGrouping):
        return lambda batch: [(box, None) for box in ordered]
    if isinstance(grouping, GlobalGrouping) or len(ordered) == 1 and not isinstance(grouping, CustomGrouping):
        return lambda batch: [(ordered[0], None)]
    if isinstance(grouping, (ShuffleGrouping, NoneGrouping, LocalOrShuffleGrouping)):
        return lambda batch: _split_evenly(ordered, picker, batch)
    if isinstance(grouping, FieldsGrouping):
        positions = field_positions(info, grouping)
        if len(positions) == 1:
            return lambda batch: _split_by_field(output, info, positions[0], ordered, batch)
    return lambda batch: _split_by_row(picker, batch)


def _split_evenly(
    boxes: list[Outbox], picker: Picker, batch: pa.RecordBatch
) -> Iterator[tuple[Outbox, NDArray[np.int64]]]:
    count = len(boxes)
    # The turn goes on where the last batch left it, so that many small batches are shared out evenly too.
    turn = boxes.index(picker(())[0])
    for _ in range((batch.num_rows - 1) % count):
        picker(())
    for shift in range(count):
        yield boxes[(turn + shift) % count], np.arange(shift, batch.num_rows, count)


def _split_by_field(
    output: TaskOutput, info: StreamInfo, position: int, boxes: list[Outbox], batch: pa.RecordBatch
) -> Iterator[tuple[Outbox, NDArray[np.int64]]]:
    # Each distinct value is hashed once; the rest is arithmetic on dictionary codes.
    column = batch.column(position)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode(null_encoding="encode")
    row = [None] * batch.num_columns
    owner = np.empty(len(encoded.dictionary), dtype=np.int64)
    for code, value in enumerate(encoded.dictionary.to_pylist()):
        row[position] = value
        owner[code] = _hash_fields(output, info, [position], tuple(row)) % len(boxes)
    targets = owner[encoded.indices.to_numpy(zero_copy_only=False)]
    order = np.argsort(targets, kind="stable")
    bounds = np.searchsorted(targets[order], np.arange(len(boxes) + 1))
    for index, box in enumerate(boxes):
        yield box, order[bounds[index] : bounds[index + 1]]


def _split_by_row(picker: Picker, batch: pa.RecordBatch) -> Iterator[tuple[Outbox, NDArray[np.int64]]]:
    chosen: dict[int, tuple[Outbox, list[int]]] = {}
    columns = [column.to_pylist() for column in batch.columns]
    for position, values in enumerate(zip(*columns, strict=True)):
        for box in picker(values):
            chosen.setdefault(box.target, (box, []))[1].append(position)
    for box, rows in chosen.values():
        yield box, np.array(rows, dtype=np.int64)
