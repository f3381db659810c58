"""Collectors: the objects with which components emit, ack and fail.

These are interfaces: the runtime implements them for running topologies, the test kit for unit tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.tuple import JointAnchors, Tuple

if TYPE_CHECKING:
    import numpy
    import pyarrow

Anchors = Tuple | Iterable[Tuple] | JointAnchors | None
"""Valid anchors of an emit: one tuple, several, or none."""


class OutputCollector(ABC):
    """The collector of a `BaseRichBolt`.

    Emitting, acking and failing is allowed while the bolt executes, on the thread that calls `execute`, and
    refused with a `TupleError` afterwards. An input may be acked in a later call of `execute`.
    """

    @abstractmethod
    def emit(self, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple.

        Args:
            values: one per field of the stream, in the fields' order.
            anchors: the input tuple or tuples that this one results from. It becomes part of their trees, which are
                complete only when it is acked too. `None` leaves it unanchored: its loss goes unnoticed.
            stream: one that `declare_output_fields` declared.

        Returns:
            The tasks that receive the tuple.

        Raises:
            TupleError: wrong number of values, an undeclared or a direct stream, or a value that can't be
                grouped.
        """

    @abstractmethod
    def emit_direct(
        self, task: int, values: Sequence[Any], anchors: Anchors = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emits a tuple to one task, over a stream that was declared direct; otherwise like `emit`."""

    @abstractmethod
    def ack(self, tup: Tuple) -> None:
        """Acks `tup`: the bolt has finished processing it.

        Every input must be acked or failed; further calls for the same tuple are ignored.
        """

    @abstractmethod
    def fail(self, tup: Tuple) -> None:
        """Fails all trees that `tup` belongs to at once: their spouts get `fail` and may emit again."""

    @abstractmethod
    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts the message timeout of the trees of `tup`."""

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the bolt continues."""


class SpoutOutputCollector(ABC):
    """The collector of a `BaseRichSpout`."""

    @abstractmethod
    def emit(self, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple.

        Args:
            values: one per field of the stream, in the fields' order.
            message_id: any picklable value that is not `None`; `ack` or `fail` of the spout is called with it
                once the tuple's tree is complete, has failed or timed out. Without it the tuple is not tracked.
            stream: one that `declare_output_fields` declared.

        Returns:
            The tasks that receive the tuple.

        Raises:
            TupleError: wrong number of values, an undeclared or a direct stream, or a value that can't be
                grouped.
        """

    @abstractmethod
    def emit_direct(
        self, task: int, values: Sequence[Any], message_id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Emits a tuple to one task, over a stream that was declared direct; otherwise like `emit`."""

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the spout continues."""

    @abstractmethod
    def pending_count(self) -> int:
        """Returns the number of this task's tuples with a message id that are neither acked nor failed."""

    def get_pending_count(self) -> int:
        """Storm's spelling of `pending_count`, for ported code."""
        return self.pending_count()


class BatchSpoutOutputCollector(ABC):
    """The collector of a `BatchSpout`, for whole record batches."""

    @abstractmethod
    def emit(
        self,
        batch: pyarrow.RecordBatch,
        message_ids: pyarrow.Array | numpy.ndarray[Any, Any] | Sequence[Any] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emits a batch of tuples, one per row.

        Args:
            batch: the columns must be the stream's fields, in their order. Its buffers must not change afterwards.
            message_ids: one per row; `ack_batch` or `fail_batch` of the spout is called with it once the row's tree is
                complete, has failed or timed out. Rows whose id is null are not tracked; without ids, no row is.
            stream: one that `declare_output_fields` declared.

        Raises:
            TupleError: the columns don't fit the stream, the stream is undeclared or direct, a value can't be
                grouped, or the ids don't fit the rows.
        """

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the spout continues."""

    @abstractmethod
    def pending_count(self) -> int:
        """Returns the number of this task's rows with a message id that are neither acked nor failed."""


class BasicOutputCollector(ABC):
    """The collector of a `BaseBasicBolt`: every emit is anchored to the input, which is acked afterwards."""

    @abstractmethod
    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emits a tuple that is anchored to the input.

        Args:
            values: one per field of the stream, in the fields' order.
            stream: one that `declare_output_fields` declared.

        Returns:
            The tasks that receive the tuple.

        Raises:
            TupleError: wrong number of values, an undeclared or a direct stream, or a value that can't be
                grouped.
        """

    @abstractmethod
    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emits a tuple to one task, over a stream that was declared direct; otherwise like `emit`."""

    @abstractmethod
    def reset_timeout(self, tup: Tuple) -> None:
        """Restarts the message timeout of the trees of `tup`."""

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the bolt continues."""


class BatchOutputCollector(ABC):
    """The collector of a `BatchBolt`, for whole record batches.

    The input batch is acked as a whole when `execute_batch` returns, except for the rows that `fail` named.
    """

    source: GlobalStreamId
    """The stream that the batch came on; of the system, for ticks (`__tick`) and timers (`__timer`)."""

    @abstractmethod
    def emit(
        self,
        batch: pyarrow.RecordBatch,
        parent: numpy.ndarray[Any, Any] | pyarrow.Array | Sequence[int] | None = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emits a batch of tuples, one per row.

        Args:
            batch: the columns must be the stream's fields, in their order.
            parent: one integer per row of `batch`: the row of the input batch that this row is anchored to, or -1
                for none. `None` anchors row *i* to input row *i* if both batches have the same number of rows, and
                otherwise leaves the whole batch unanchored.
            stream: one that `declare_output_fields` declared.

        Raises:
            TupleError: the columns don't fit the stream, the stream is undeclared, or `parent` doesn't
                fit the rows.
        """

    @abstractmethod
    def fail(self, rows: numpy.ndarray[Any, Any] | pyarrow.Array | Sequence[int]) -> None:
        """Fails these rows (positions in the input batch) instead of acking them."""

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the bolt continues."""
