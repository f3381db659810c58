"""One task of a `BatchSpout`: a spout's task with record batches and arrays of message ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import BatchSpoutOutputCollector
from storm_on_spark.runtime.reports.report import add_reported
from storm_on_spark.runtime.spouts import message_ids
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.tracking import acker
from storm_on_spark.runtime.tracking.fold import U8Array
from storm_on_spark.runtime.tracking.ids import U64Array
from storm_on_spark.runtime.tracking.lineage import UNANCHORED
from storm_on_spark.runtime.tracking.pending import Ended
from storm_on_spark.runtime.values import pickling


class _Collector(BatchSpoutOutputCollector):
    def __init__(self, task: BatchSpoutTask) -> None:
        self._task = task

    def emit(self, batch: pa.RecordBatch, message_ids: Any = None, stream: str = DEFAULT_STREAM) -> None:
        self._task.emit_batch(batch, message_ids, stream)

    def report_error(self, error: BaseException) -> None:
        add_reported(self._task.errors, error)

    def pending_count(self) -> int:
        return self._task.pending_count()


class BatchSpoutTask(SpoutTask):
    """A `BatchSpout`'s task, opened and restored; arguments and errors are those of `SpoutTask`."""

    most_cut_tuples = 1 << 16
    """Cuts are what a `BatchBolt` gets at once: it takes a fifth less for four times as many rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Ids of the messages that are in no cut.
        self._uncut_ids: list[pa.Array] = []
        #: Of the messages that were emitted so far; a restart may begin with another.
        self._ids_type: pa.DataType | None = None
        #: What ended in the micro-batch that is being settled.
        self._ended: list[tuple[pa.Array, U8Array]] = []
        super().__init__(*args, **kwargs)

    def _make_collector(self) -> Any:
        return _Collector(self)

    def emit_batch(self, batch: pa.RecordBatch, ids: Any, stream: str) -> None:
        """Emits a record batch; see `BatchSpoutOutputCollector.emit`."""
        given = message_ids.of_emit(batch, ids, self._ids_type, f'"{self.component}" (task {self.task})')
        anchors = np.full(batch.num_rows, UNANCHORED, np.int64)
        if given is not None and self._ackers:
            tracked = np.ones(len(given), np.bool_) if given.null_count == 0 else given.is_valid().to_numpy(False)
            count = int(tracked.sum())
            anchors[tracked] = np.arange(count) + (self.pending.following - self._uncut)
        self._output.emit_batch(stream, batch, anchors)
        self.fresh += batch.num_rows
        if given is not None and len(given := given.drop_null()):
            self._ids_type = given.type
            if self._ackers:
                self._uncut_ids.append(given)
                self.pending.append(given, np.full(len(given), self._called))
            else:
                self._emit_acks.append(given)

    def next_tuple(self, now: float | None = None) -> bool:
        """Calls the spout once; returns whether it emitted; see `SpoutTask.next_tuple`."""
        before = self.fresh
        self._called = self.now() if now is None else now
        self._guard("next_batch", self.spout.next_batch)
        if self._emit_acks:
            self._ack_emitted()
        return self.fresh != before

    def _ack_all(self, ids: list[Any]) -> None:
        self._tell("ack_batch", ids)

    def _close_block(self) -> bytes:
        ids = next(message_ids.concatenated(self._uncut_ids))
        self.pending.merge_blocks(self._uncut, ids)
        self._uncut_ids = []
        return pickling.dumps(message_ids.encode(ids))

    def _logged_ids(self, ids: Any) -> Any:
        try:
            return message_ids.decode(ids) if isinstance(ids, bytes) else message_ids.as_array(ids)
        except pa.ArrowException as error:
            raise CheckpointError(
                f'spout "{self.component}" (task {self.task}) has pending messages whose ids are not an Arrow array, '
                f"from before it became a BatchSpout: {error}; let those messages complete with the old code first"
            ) from error

    def _old_ids(self, old: dict[int, Any]) -> dict[int, Any]:
        return old

    def settle(self, batch: int, roots: U64Array, codes: U8Array, left: Sequence[bytes] = ()) -> None:
        """Calls `ack_batch` and `fail_batch` for the messages that ended in `batch`; see `SpoutTask.settle`."""
        super().settle(batch, roots, codes, left)
        ended, self._ended = self._ended, []
        acked = [ids.filter(pa.array(codes == acker.ACKED)) if codes.any() else ids for ids, codes in ended]
        failed = [ids.filter(pa.array(codes != acker.ACKED)) for ids, codes in ended if codes.any()]
        self._tell("ack_batch", acked)
        self._tell("fail_batch", failed)

    def acked(self, roots: Sequence[int]) -> None:
        """Calls `ack_batch` for a few messages; see `SpoutTask.acked`."""
        self.settle(-1, np.array(roots, np.uint64), np.full(len(roots), acker.ACKED, np.uint8))

    def _answer(self, ended: Ended, codes: U8Array, seconds: NDArray[np.float64]) -> None:
        if isinstance(ended.ids, pa.Array):
            self._ended.append((ended.ids, codes))
        else:
            self._ended += [(ids, codes) for ids in message_ids.of_values(ended.ids)]
        failed = int((codes != acker.ACKED).sum())
        self.stats.failed += failed
        self.stats.timed_out += int((codes == acker.TIMED_OUT).sum())

    def _tell(self, method: str, arrays: list[pa.Array]) -> None:
        for ids in message_ids.concatenated(array for array in arrays if len(array)):
            if method == "ack_batch":
                self.stats.acked += len(ids)
            self._guard(method, getattr(self.spout, method), ids)
