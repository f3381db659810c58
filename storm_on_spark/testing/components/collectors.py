"""Collector doubles: the runtime's own collectors, which also record every call.

So an emit that the runtime would refuse is refused here, with the same error. A double without a component accepts
every stream and any number of values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from storm_on_spark.api.component import BaseComponent
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import Anchors, BatchSpoutOutputCollector, SpoutOutputCollector
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.runtime.bolts.collectors import BasicCollector, BatchCollector, RichCollector
from storm_on_spark.runtime.emit.output import Emit, TaskOutput
from storm_on_spark.runtime.spouts import message_ids as ids_of_rows
from storm_on_spark.runtime.tracking.lineage import UNANCHORED
from storm_on_spark.runtime.values.batches import to_rows
from storm_on_spark.runtime.values.frozen import freeze, owned, thaw
from storm_on_spark.testing.components.bench import Bench
from storm_on_spark.testing.records import BatchEmission, BatchSpoutEmission, Emission

if TYPE_CHECKING:
    import pyarrow


class RecordingCollector(RichCollector):
    """A double for a `BaseRichBolt`.

    Args:
        component: the bolt under test, so that its declared streams are enforced; None to accept anything.
        output: checks emits; made from `component` for None.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> collector = RecordingCollector()
        >>> tup = make_tuple(["to be"], ["sentence"])
        >>> for word in tup["sentence"].split():
        ...     _ = collector.emit([word], anchors=tup)
        >>> collector.ack(tup)
        >>> collector.values(), collector.acked == [tup]
        ([('to',), ('be',)], True)
    """

    def __init__(self, component: BaseComponent | None = None, *, output: TaskOutput | None = None) -> None:
        super().__init__(output or _output_for(component))
        #: All emits in order.
        self.emitted: list[Emission] = []
        #: Input tuples that were acked; another ack or fail of the same tuple is ignored, as in Storm.
        self.acked: list[Tuple] = []
        #: Input tuples that were failed.
        self.failed: list[Tuple] = []
        #: Input tuples whose message timeout was to be restarted.
        self.timeouts_reset: list[Tuple] = []
        #: The arguments of `report_error`.
        self.errors: list[BaseException] = []

    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Checks and records an emit; returns the receivers that the test named."""
        anchors = _listed(anchors)
        tasks = super().emit(values, anchors, stream)
        self.emitted.append(Emission(thaw(freeze(tuple(values))), stream, tuple(anchors)))
        return tasks

    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Checks and records a direct emit."""
        anchors = _listed(anchors)
        super().emit_direct(task, values, anchors, stream)
        self.emitted.append(Emission(thaw(freeze(tuple(values))), stream, tuple(anchors), task=task))

    def ack(self, tup: Tuple) -> None:
        """Records an ack."""
        if not _settled(tup):
            self.acked.append(tup)
        super().ack(tup)

    def fail(self, tup: Tuple) -> None:
        """Records a fail."""
        if not _settled(tup):
            self.failed.append(tup)
        super().fail(tup)

    def reset_timeout(self, tup: Tuple) -> None:
        """Records a request for more time."""
        super().reset_timeout(tup)
        self.timeouts_reset.append(tup)

    def report_error(self, error: BaseException) -> None:
        """Records an error."""
        super().report_error(error)
        self.errors.append(error)

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the values that were emitted on a stream, in order."""
        return _values(self.emitted, stream)


class RecordingBasicCollector(BasicCollector):
    """A double for a `BaseBasicBolt`; every emit is anchored to `current`.

    Args:
        component: the bolt under test, so that its declared streams are enforced; None to accept anything.
        output: checks emits; made from `component` for None.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> collector = RecordingBasicCollector()
        >>> collector.current = make_tuple(["to be"])
        >>> _ = collector.emit(["to"])
        >>> collector.emitted[0].anchors == (collector.current,)
        True
    """

    def __init__(self, component: BaseComponent | None = None, *, output: TaskOutput | None = None) -> None:
        super().__init__(output or _output_for(component))
        #: The tuple that the bolt is executing.
        self.current: Tuple | None = None
        #: All emits in order.
        self.emitted: list[Emission] = []
        #: Input tuples that were executed without an error.
        self.acked: list[Tuple] = []
        #: Input tuples on which the bolt raised `FailedException`.
        self.failed: list[Tuple] = []
        #: Input tuples whose message timeout was to be restarted.
        self.timeouts_reset: list[Tuple] = []
        #: The reported errors.
        self.errors: list[BaseException] = []

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Checks and records an emit; returns the receivers that the test named."""
        tasks = super().emit(values, stream)
        self.emitted.append(Emission(thaw(freeze(tuple(values))), stream, self._anchors()))
        return tasks

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Checks and records a direct emit."""
        super().emit_direct(task, values, stream)
        self.emitted.append(Emission(thaw(freeze(tuple(values))), stream, self._anchors(), task=task))

    def reset_timeout(self, tup: Tuple) -> None:
        """Records a request for more time."""
        super().reset_timeout(tup)
        self.timeouts_reset.append(tup)

    def report_error(self, error: BaseException) -> None:
        """Records an error."""
        super().report_error(error)
        self.errors.append(error)

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the values that were emitted on a stream, in order."""
        return _values(self.emitted, stream)

    def _anchors(self) -> tuple[Tuple, ...]:
        return () if self.current is None else (self.current,)


class RecordingBatchCollector(BatchCollector):
    """A double for a `BatchBolt`. Call `begin` with the input batch before `execute_batch`.

    Args:
        component: the bolt under test, so that its declared streams are enforced; None to accept anything.
        output: checks emits; made from `component` for None.

    Example:
        >>> import pyarrow as pa
        >>> collector = RecordingBatchCollector()
        >>> collector.begin(pa.record_batch({"sentence": ["to be", "or"]}))
        >>> collector.emit(pa.record_batch({"word": ["to", "be", "or"]}), parent=[0, 0, 1])
        >>> collector.values(), collector.emitted[0].parents
        ([('to',), ('be',), ('or',)], (0, 0, 1))
    """

    def __init__(self, component: BaseComponent | None = None, *, output: TaskOutput | None = None) -> None:
        super().__init__(output or _output_for(component))
        #: All emitted batches in order.
        self.emitted: list[BatchEmission] = []
        #: Positions, among all input rows, of those that were acked.
        self.acked: list[int] = []
        #: Positions, among all input rows, of those that failed.
        self.failed: list[int] = []
        #: The reported errors.
        self.errors: list[BaseException] = []

    def begin(self, batch: pyarrow.RecordBatch) -> None:
        """Sets the batch that the bolt executes next."""
        self.offset += self.rows
        self.rows = batch.num_rows

    def end(self) -> None:
        """Acks the rows of the current batch that did not fail, as the runtime does after `execute_batch`."""
        gone = set(self.failed)
        self.acked += [row for row in range(self.offset, self.offset + self.rows) if row not in gone]

    def emit(self, batch: pyarrow.RecordBatch, parent: Any = None, stream: str = DEFAULT_STREAM) -> None:
        """Checks and records an emit."""
        super().emit(batch, parent, stream)
        if parent is not None:
            parents = np.asarray(parent, dtype=np.int64).tolist()
        elif batch.num_rows == self.rows:
            parents = list(range(self.rows))
        else:
            parents = [UNANCHORED] * batch.num_rows
        self.emitted.append(BatchEmission(owned(batch), tuple(parents), stream))

    def fail(self, rows: Any) -> None:
        """Records failed rows."""
        super().fail(rows)
        known = set(self.failed)
        positions = (np.asarray(rows, dtype=np.int64) + self.offset).tolist()
        self.failed += [row for row in dict.fromkeys(positions) if row not in known]

    def report_error(self, error: BaseException) -> None:
        """Records an error."""
        super().report_error(error)
        self.errors.append(error)

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the rows that were emitted on a stream, in order."""
        return _rows(self.emitted, stream)


class RecordingSpoutCollector(SpoutOutputCollector):
    """A double for a `BaseRichSpout`.

    Args:
        component: the spout under test, so that its declared streams are enforced; None to accept anything.
        output: checks emits; made from `component` for None.

    Example:
        >>> collector = RecordingSpoutCollector()
        >>> _ = collector.emit(["to be"], message_id=7)
        >>> collector.emitted[0].message_id, collector.pending_count()
        (7, 1)
    """

    def __init__(self, component: BaseComponent | None = None, *, output: TaskOutput | None = None) -> None:
        self._output = output or _output_for(component)
        #: All emits in order.
        self.emitted: list[Emission] = []
        #: Message ids that are neither acked nor failed, in emit order.
        self.pending: list[Any] = []
        #: Message ids whose acks the spout was told of.
        self.acked: list[Any] = []
        #: Message ids whose fails the spout was told of.
        self.failed: list[Any] = []
        #: The arguments of `report_error`.
        self.errors: list[BaseException] = []

    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Checks and records an emit; returns the receivers that the test named."""
        tasks = self._output.emits[stream](values, UNANCHORED)
        self._record(Emission(thaw(freeze(tuple(values))), stream, message_id=message_id))
        return tasks

    def emit_direct(
        self, task: int, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Checks and records a direct emit."""
        self._output.emit_direct(task, stream, values, UNANCHORED)
        self._record(Emission(thaw(freeze(tuple(values))), stream, message_id=message_id, task=task))

    def report_error(self, error: BaseException) -> None:
        """Records an error."""
        self.errors.append(error)

    def pending_count(self) -> int:
        """Returns how many messages are neither acked nor failed."""
        return len(self.pending)

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the values that were emitted on a stream, in order."""
        return _values(self.emitted, stream)

    def _record(self, emission: Emission) -> None:
        self.emitted.append(emission)
        if emission.message_id is not None:
            self.pending.append(emission.message_id)


class RecordingBatchSpoutCollector(BatchSpoutOutputCollector):
    """A double for a `BatchSpout`.

    All message ids must have the type of the first. A running topology may accept another type or refuse it, depending
    on when it writes to its log.

    Args:
        component: the spout under test, so that its declared streams are enforced; None to accept anything.
        output: checks emits; made from `component` for None.

    Example:
        >>> import pyarrow as pa
        >>> collector = RecordingBatchSpoutCollector()
        >>> collector.emit(pa.record_batch({"sentence": ["to be", "or"]}), message_ids=[7, None])
        >>> collector.values(), collector.emitted[0].message_ids, collector.pending
        ([('to be',), ('or',)], (7, None), [7])
    """

    def __init__(self, component: BaseComponent | None = None, *, output: TaskOutput | None = None) -> None:
        self._output = output or _output_for(component)
        #: All emitted batches in order.
        self.emitted: list[BatchSpoutEmission] = []
        #: Message ids that are neither acked nor failed, in emit order.
        self.pending: list[Any] = []
        #: The Arrow type of all message ids; None before the first.
        self.id_type: pyarrow.DataType | None = None
        #: Message ids whose acks the spout was told of.
        self.acked: list[Any] = []
        #: Message ids whose fails the spout was told of.
        self.failed: list[Any] = []
        #: The arguments of `report_error`.
        self.errors: list[BaseException] = []

    def emit(self, batch: pyarrow.RecordBatch, message_ids: Any = None, stream: str = DEFAULT_STREAM) -> None:
        """Checks and records an emit."""
        who = f'"{self._output.component}" (task {self._output.task})'
        given = ids_of_rows.of_emit(batch, message_ids, self.id_type, who)
        self._output.emit_batch(stream, batch, np.full(batch.num_rows, UNANCHORED, np.int64))
        ids = [None] * batch.num_rows if given is None else given.to_pylist()
        self.emitted.append(BatchSpoutEmission(owned(batch), tuple(ids), stream))
        tracked = [message_id for message_id in ids if message_id is not None]
        if given is not None and tracked:
            self.id_type = given.type
            self.pending += tracked

    def report_error(self, error: BaseException) -> None:
        """Records an error."""
        self.errors.append(error)

    def pending_count(self) -> int:
        """Returns how many rows with a message id are neither acked nor failed."""
        return len(self.pending)

    def values(self, stream: str = DEFAULT_STREAM) -> list[tuple[Any, ...]]:
        """Returns the rows that were emitted on a stream, in order."""
        return _rows(self.emitted, stream)


class _AnyOutput:
    """Accepts every emit; used by a double that knows no component."""

    component = "component"
    task = 1
    context = SimpleNamespace(hooks=())

    def __init__(self) -> None:
        self.emits: dict[str, Emit] = defaultdict(lambda: lambda values, anchor: [])

    def emit_direct(self, task: int, stream: str, values: Sequence[Any], anchor: Any) -> None:
        pass

    def emit_batch(self, stream: str, batch: pyarrow.RecordBatch, anchors: Any) -> None:
        pass


def _output_for(component: BaseComponent | None) -> TaskOutput:
    if component is None:
        return cast(TaskOutput, _AnyOutput())
    bench = Bench(component)
    return bench.output(bench.context())


def _listed(anchors: Anchors) -> Sequence[Tuple]:
    """Returns anchors as a sequence: an iterator would be empty by the time it is recorded."""
    if anchors is None:
        return ()
    return (anchors,) if isinstance(anchors, Tuple) or not isinstance(anchors, Iterable) else tuple(anchors)


def _settled(tup: Tuple) -> bool:
    return tup._settled  # noqa: SLF001 # a tuple knows this for the collectors' sake


def _values(emitted: Iterable[Emission], stream: str) -> list[tuple[Any, ...]]:
    return [emission.values for emission in emitted if emission.stream == stream]


def _rows(emitted: Iterable[BatchEmission | BatchSpoutEmission], stream: str) -> list[tuple[Any, ...]]:
    return [row for part in emitted if part.stream == stream for row in to_rows(part.batch)]
