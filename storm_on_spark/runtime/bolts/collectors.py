"""The collectors that running bolts emit, ack and fail through."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.task.collector import (
    Anchors,
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
)
from storm_on_spark.api.task.hooks import BoltAckInfo, BoltFailInfo, EmitInfo
from storm_on_spark.api.tuple import Delivery, JointAnchors, Tuple
from storm_on_spark.runtime.bolts.watching.in_hand import in_hand
from storm_on_spark.runtime.emit.output import Emit, TaskOutput
from storm_on_spark.runtime.emit.routing import Owners
from storm_on_spark.runtime.reports.report import Reported, add_reported
from storm_on_spark.runtime.tracking.fold import Fold
from storm_on_spark.runtime.tracking.lineage import UNANCHORED, Anchor, marked

if TYPE_CHECKING:
    import pyarrow

Refusal = Callable[[], TupleError]

_ORDER = "values come first: emit([...], anchors=tup)"


class Held(NamedTuple):
    """A tuple that came in an earlier execution."""

    roots: tuple[int, ...]
    edge: int
    source: tuple[str, str]
    """The component and the stream that it came from."""
    seconds: float
    """How long ago it came."""


def fold_of_held(held: Sequence[Held], mark: int) -> Fold:
    """Returns what ackers have to hear of such tuples: their edges, or a mark."""
    flat = np.array([(root, tup.edge) for tup in held for root in tup.roots], dtype=np.uint64).reshape(-1, 2)
    return marked(flat[:, 0], mark, xors=None if mark else flat[:, 1])


class Ledger:
    """The acks, fails, timeout resets and errors of a bolt task in one execution.

    Args:
        errors: what was reported since the last execution.
    """

    def __init__(self, errors: list[Reported] | None = None) -> None:
        #: Identity of the execution; deliveries carry it.
        self.execution = object()
        #: Position of the input tuple that a basic bolt is executing.
        self.current = UNANCHORED
        self.acked: list[int] = []
        self.acked_held: list[Held] = []
        self.failed: list[int] = []
        self.failed_held: list[Held] = []
        #: Roots whose timeout starts again.
        self.reset: list[int] = []
        self.errors: list[Reported] = [] if errors is None else errors

    def close(self, refusal: Refusal) -> None:
        """Ends the execution: from here on only errors can be reported.

        Also for collectors that user code kept. So the ledger loses its attributes, instead of checking at each access
        whether it is closed.
        """
        self.__dict__ = {"errors": [], "refusal": refusal}
        self.__class__ = _ClosedLedger

    def mark(self) -> tuple[int, ...]:
        """Returns the present size, for `truncate`."""
        return tuple([len(part) for part in self._lists()])

    def truncate(self, mark: tuple[int, ...]) -> None:
        """Drops everything that came after `mark`."""
        for part, length in zip(self._lists(), mark, strict=True):
            del part[length:]

    def _lists(self) -> tuple[list[Any], ...]:
        return self.acked, self.acked_held, self.failed, self.failed_held, self.reset, self.errors


class _ClosedLedger(Ledger):
    refusal: Refusal

    def __getattr__(self, name: str) -> Any:
        raise self.refusal()


class _NoEmits(dict[str, Emit]):
    """Stands for the emit functions between two executions."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__()
        self._refusal = refusal

    def __missing__(self, stream: str) -> Emit:
        raise self._refusal()


class _Collector:
    def __init__(self, output: TaskOutput) -> None:
        self._output = output
        self._emits: dict[str, Emit] = output.emits
        self._task = output.task
        self.hooks = output.context.hooks
        self.ledger = Ledger()
        #: What `BoltTask.loops` returns; it knows where to look for what is executed.
        self.loops: frozenset[CodeType] = frozenset()
        self._no_emits = _NoEmits(self._late)

    def open_ledger(self) -> Ledger:
        """Starts an execution; returns its ledger."""
        self._emits = self._output.emits
        self.ledger = Ledger(self.ledger.errors)
        return self.ledger

    def close_ledger(self) -> None:
        """Ends an execution. What a thread of the bolt does from here on would be lost, or be put to other tuples."""
        self._emits = self._no_emits
        self.ledger.close(self._late)

    def _late(self) -> TupleError:
        return TupleError(
            f'"{self._output.component}" (task {self._task}) used its collector outside of execute; emit, ack '
            "and fail in execute: keep a tuple in an attribute and deal with it when a later one, or a tick, comes"
        )

    def report_error(self, error: BaseException) -> None:
        found = in_hand(sys._getframe(1), self.loops)
        add_reported(self.ledger.errors, error, None if found is None else found[1])

    def reset_timeout(self, tup: Tuple) -> None:
        self.ledger.reset.extend(tup._roots)

    def _tell_emit(self, values: Sequence[Any], stream: str, tasks: list[int]) -> None:
        for hook in self.hooks:
            hook.emit(EmitInfo(values, stream, self._task, tasks))

    def _settle(self, tup: Tuple, acked: bool) -> None:
        if tup._settled:
            return
        ledger, delivery = self.ledger, tup._delivery
        # Between two executions this raises, before the tuple counts as settled.
        current = delivery.execution is ledger.execution
        tup._settled = True
        if current:
            (ledger.acked if acked else ledger.failed).append(delivery.offset + tup._position)
        else:
            waited = max(0.0, time.time() - delivery.received)
            held = Held(tup._roots, tup._edge, (delivery.component, delivery.stream), waited)
            (ledger.acked_held if acked else ledger.failed_held).append(held)
        for hook in self.hooks:
            if acked:
                hook.bolt_ack(BoltAckInfo(tup, self._task, None))
            else:
                hook.bolt_fail(BoltFailInfo(tup, self._task, None))


class RichCollector(_Collector, OutputCollector):
    """For `BaseRichBolt`."""

    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        if anchors.__class__ is Tuple and anchors._delivery.execution is self.ledger.execution:
            # As `_anchor`, for the common case.
            anchor: Anchor = anchors._delivery.offset + anchors._position
        else:
            anchor = UNANCHORED if anchors is None else self._anchor(anchors)
        tasks = self._emits[stream](values, anchor)
        if self.hooks:
            self._tell_emit(values, stream, tasks)
        return tasks

    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        _ = self._emits[stream]  # refuses it between two executions
        self._output.emit_direct(task, stream, values, self._anchor(anchors))
        if self.hooks:
            self._tell_emit(values, stream, [task])

    def ack(self, tup: Tuple) -> None:
        # `_settle` for the common case, in half the time.
        delivery, ledger = tup._delivery, self.ledger
        if delivery.execution is ledger.execution and not self.hooks:
            if not tup._settled:
                tup._settled = True
                ledger.acked.append(delivery.offset + tup._position)
        else:
            self._settle(tup, True)

    def fail(self, tup: Tuple) -> None:
        self._settle(tup, False)

    def _anchor(self, anchors: Anchors) -> Anchor:
        if anchors.__class__ is Tuple:
            delivery = anchors._delivery
            if delivery.execution is self.ledger.execution:
                return delivery.offset + anchors._position
            return anchors._roots or UNANCHORED
        if anchors is None:
            return UNANCHORED
        if isinstance(anchors, JointAnchors):
            return anchors.roots or UNANCHORED
        if anchors.__class__ is not list and not isinstance(anchors, Iterable):
            raise TupleError(f"anchors must be a tuple, several tuples or None, not {anchors!r:.100}; {_ORDER}")
        roots: list[int] = []
        for tup in anchors:
            if not isinstance(tup, Tuple):
                raise TupleError(f"an anchor must be a Tuple that the bolt received, not {tup!r:.100}; {_ORDER}")
            roots += tup._roots
        return tuple(dict.fromkeys(roots)) or UNANCHORED


class BasicCollector(_Collector, BasicOutputCollector):
    """For `BaseBasicBolt`: the anchor is the tuple being executed."""

    def open_ledger(self) -> Ledger:
        ledger = super().open_ledger()
        send = self._emits.get(DEFAULT_STREAM)
        if send is not None and not self.hooks:
            self.emit = self._quick_emit(send, self._output.owners(DEFAULT_STREAM), ledger)  # type: ignore[method-assign]
        return ledger

    def close_ledger(self) -> None:
        self.__dict__.pop("emit", None)
        super().close_ledger()

    def _quick_emit(self, send: Emit, owners: Owners | None, ledger: Ledger) -> Callable[..., list[int]]:
        """Returns `emit` for what most bolts do most, with all that is looked up before: no hooks, the default stream.

        Where the stream is grouped by its only value, a text needs no further call.
        """
        otherwise = partial(BasicCollector.emit, self)

        def emit(values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
            return send(values, ledger.current) if stream is DEFAULT_STREAM else otherwise(values, stream)

        if owners is None:
            return emit

        def emit_text(values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
            if stream is not DEFAULT_STREAM:
                return otherwise(values, stream)
            anchor = ledger.current
            try:
                (value,) = values
            except (TypeError, ValueError):
                return send(values, anchor)
            if value.__class__ is not str or values.__class__ is str:
                return send(values if values.__class__ is str else (value,), anchor)  # an iterator gives its value once
            put, tie, task, value = owners[value]
            put(value)
            tie(anchor)
            return [task]

        return emit_text

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        tasks = self._emits[stream](values, self.ledger.current)
        if self.hooks:
            self._tell_emit(values, stream, tasks)
        return tasks

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        self._output.emit_direct(task, stream, values, self.ledger.current)
        if self.hooks:
            self._tell_emit(values, stream, [task])


class BatchCollector(_Collector, BatchOutputCollector):
    """For `BatchBolt`: whole record batches, anchored by row."""

    def __init__(self, output: TaskOutput) -> None:
        super().__init__(output)
        #: Position of the current batch's first row among all input, and its number of rows.
        self.offset = 0
        self.rows = 0

    def take(self, delivery: Delivery, rows: int) -> None:
        """Notes which batch is executed next."""
        self.offset, self.rows = delivery.offset, rows
        self.source = GlobalStreamId(delivery.component, delivery.stream)

    def emit(self, batch: pyarrow.RecordBatch, parent: Any = None, stream: str = DEFAULT_STREAM) -> None:
        _ = self._emits[stream]  # refuses it between two executions
        if parent is None:
            same = batch.num_rows == self.rows
            anchors = np.arange(self.rows) if same else np.full(batch.num_rows, UNANCHORED)
        else:
            anchors = np.asarray(parent, dtype=np.int64)
            if len(anchors) != batch.num_rows:
                raise TupleError(f"parent has {len(anchors)} entries for {batch.num_rows} rows on stream {stream!r}")
            if len(anchors) and (anchors.min() < UNANCHORED or anchors.max() >= self.rows):
                raise TupleError(
                    f"parent names row {int(anchors.max())} (least {int(anchors.min())}) of an input batch of "
                    f"{self.rows} rows on stream {stream!r}"
                )
        self._output.emit_batch(stream, batch, np.where(anchors >= 0, anchors + self.offset, UNANCHORED))

    def fail(self, rows: Any) -> None:
        failed = np.asarray(rows, dtype=np.int64).tolist()
        wrong = [row for row in failed if not 0 <= row < self.rows]
        if wrong:
            raise TupleError(f"fail names row {wrong[0]} of an input batch of {self.rows} rows")
        self.ledger.failed += [row + self.offset for row in failed]
