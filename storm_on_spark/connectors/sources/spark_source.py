"""Spouts on Spark's own sources: what happens to rows that were not acked at once."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import NativeSpout
from storm_on_spark.api.errors import ConfigError, StormError
from storm_on_spark.api.streams.constants import SYSTEM_PREFIX
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.connectors.sources.retry import RetryBackoff

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 1000
"""Rows that one call emits again at most."""
_ROOT = "__root"
_AGAIN = "a bolt failed its tuple, or that timed out"


class SourceError(StormError):
    """A spout on one of Spark's own sources can't continue."""


@dataclass
class _Kept:
    """A row that was not acked in the micro-batch that read it."""

    row: dict[str, Any]
    schema: pa.Schema
    """The schema of the row as Spark read it; one object for all rows that were read together."""
    failures: int = 0
    reason: str = ""
    due: float = 0.0
    """When it is emitted again, in seconds of the clock."""
    given_up: bool = False
    """Whether it goes to the stream of dead letters."""


class KeptRows:
    """The rows that a native spout keeps, and what it notes beside them: the whole of its state."""

    def __init__(self) -> None:
        #: By root: rows whose first tuple is still under way.
        self.open: dict[int, _Kept] = {}
        #: By message id: rows that wait for their next attempt, and those whose tuple is under way again.
        self.waiting: dict[Any, _Kept] = {}
        self.again: dict[Any, _Kept] = {}
        #: What a subclass notes of positions.
        self.positions: dict[Any, Any] = {}
        #: By name: the ids of what is read, such as topics. One that was deleted and created again has another.
        self.ids: dict[str, str] = {}
        #: What the task has read itself, and the change of reader with which it last began to; see `ReadsItself`.
        self.read: Any = None
        self.change = 0
        #: Whether a micro-batch that Spark had planned before is not known to be done.
        self.planned = False


class SparkSourceSpout(NativeSpout):
    """A spout on one of Spark's own sources, with retries and a stream of dead letters.

    A subclass says what Spark reads (`read`), what tuples become of rows (`columns` or `tuple_of`) and what names a row
    (`message_id`).

    Args:
        retry: when a failed row's tuple is emitted again, and when the row is given up.
        dead_letter_stream: where rows go that are given up; None to drop them with a warning in the log.

    Raises:
        ConfigError: an argument makes no sense.
    """

    clock: Callable[[], float] = staticmethod(time.time)
    """Seconds; retries wait by it."""

    def __init__(self, retry: RetryBackoff = RetryBackoff(), dead_letter_stream: str | None = None) -> None:  # noqa: B008 # it is immutable
        stream = dead_letter_stream
        if stream is not None and (not stream or stream == DEFAULT_STREAM or stream.startswith(SYSTEM_PREFIX)):
            raise ConfigError(
                f"the dead-letter stream needs its own name (given {stream!r:.100})", key="dead_letter_stream"
            )
        self._retry = retry
        self._dead_letters = stream
        self._rows = KeptRows()
        #: Before it nothing that waits is due; 0 if that is not known.
        self._next_due = 0.0

    @property
    def state_holder(self) -> KeptRows:
        """What is saved: not the arguments, which may be others after a restart."""
        return self._rows

    # --- what a subclass says ---------------------------------------------------------------

    @abstractmethod
    def message_id(self, row: Mapping[str, Any]) -> Any:
        """Returns what names a row; a value that can be pickled and is a key of a dict."""

    @abstractmethod
    def tuple_streams(self) -> Mapping[str, Fields]:
        """Returns the streams of tuples, with their fields."""

    dead_letter_fields: Fields = Fields("message_id", "row", "reason", "failures")
    """The fields of the dead-letter stream."""

    def dead_letter(self, message_id: Any, row: Mapping[str, Any], reason: str, failures: int) -> Sequence[Any]:
        """Returns the tuple of a row that is given up; it is emitted until it is acked."""
        return [message_id, dict(row), reason, failures]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams of tuples, and the dead-letter stream if there is one."""
        for stream, fields in self.tuple_streams().items():
            declarer.declare_stream(stream, fields)
        if self._dead_letters is not None:
            declarer.declare_stream(self._dead_letters, self.dead_letter_fields)

    # --- in the process that keeps rows ---------------------------------------------------------------

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Takes the collector."""
        self._collector, self._context = collector, context

    def keep(self, roots: Sequence[int], rows: pa.RecordBatch) -> None:
        """Keeps rows until they are acked or given up."""
        for root, row in zip(roots, rows.to_pylist(), strict=True):
            self._rows.open[root] = _Kept(row, rows.schema)

    def kept(self) -> Collection[int]:
        """Returns the roots of rows whose first tuple is under way."""
        return self._rows.open.keys()

    def waiting(self) -> int:
        """Returns how many rows wait for their next attempt."""
        return len(self._rows.waiting)

    def row_acked(self, root: int) -> None:
        """Forgets the row."""
        del self._rows.open[root]

    def row_failed(self, root: int, reason: str) -> None:
        """Lets the row wait for its next attempt, or gives it up."""
        kept = self._rows.open.pop(root)
        self._failed(self.message_id(kept.row), kept, reason)

    def next_tuple(self) -> None:
        """Emits tuples again that are due."""
        if not self._rows.waiting:
            return
        now, most = self.clock(), self._most_delay()
        if 0 < self._next_due - now <= most:
            return
        waiting = self._rows.waiting.items()
        due = [(name, kept) for name, kept in waiting if not 0 < kept.due - now <= most]
        self._next_due = 0.0 if due else min(kept.due for _, kept in waiting)
        for name, kept in due[:_MOST_AT_ONCE]:
            del self._rows.waiting[name]
            self._emit(name, kept)

    def _emit(self, name: Any, kept: _Kept) -> None:
        if kept.given_up:
            if self._dead_letters is None:
                self._drop(name, kept)
            else:
                self._rows.again[name] = kept
                letter = self.dead_letter(name, kept.row, kept.reason, kept.failures)
                self._collector.emit(letter, name, self._dead_letters)
            return
        try:
            values = self._values(kept)
        except Exception as error:  # whatever the user's translator raises
            why = f"no tuple can be made of it: {type(error).__name__}: {error}"
            if self._dead_letters is None:
                raise SourceError(
                    f'spout "{self._context.this_component_id}", row {name!r}: {why}; '
                    "with a dead-letter stream such rows go to that stream"
                ) from error
            # It will be no other row the next time.
            kept.given_up, kept.reason = True, why
            self._rows.waiting[name] = kept
            return
        if values is not None:
            self._rows.again[name] = kept
            self._collector.emit(values, name, getattr(values, "stream", DEFAULT_STREAM))

    def ack(self, message_id: Any) -> None:
        """Forgets the row."""
        del self._rows.again[message_id]

    def fail(self, message_id: Any) -> None:
        """Lets the row wait for its next attempt, or gives it up."""
        self._failed(message_id, self._rows.again.pop(message_id), _AGAIN)

    def kept_messages(self) -> Iterator[Any]:
        """Yields the message ids of all rows that are neither acked nor dropped."""
        yield from (self.message_id(kept.row) for kept in self._rows.open.values())
        yield from self._rows.waiting
        yield from self._rows.again

    def _most_delay(self) -> float:
        """The longest delay in seconds. A later due time shows that the clock was set back."""
        return self._retry.max_delay_ms / 1000

    def _values(self, kept: _Kept) -> Sequence[Any] | None:
        import pyarrow as pa

        columns = self.columns(pa.RecordBatch.from_pylist([kept.row], kept.schema))
        if columns is None:
            return self.tuple_of(kept.row)
        return [column[0].as_py() for column in columns.columns]

    def _failed(self, message_id: Any, kept: _Kept, reason: str) -> None:
        if kept.given_up:
            # A dead letter comes again until it is acked.
            delay: int | None = self._retry.capped_delay_ms(2)
        else:
            kept.failures += 1
            kept.reason = reason
            delay = self._retry.delay_ms(kept.failures)
        if delay is None and self._dead_letters is not None:
            kept.given_up, delay = True, 0
        if delay is None:
            self._drop(message_id, kept)
        else:
            kept.due = self.clock() + delay / 1000
            self._next_due = min(self._next_due, kept.due)
            self._rows.waiting[message_id] = kept

    def _drop(self, message_id: Any, kept: _Kept) -> None:
        log.warning(
            'spout "%s" gives up row %r after %d failures: %s',
            self._context.this_component_id, message_id, kept.failures, kept.reason,
        )  # fmt: skip


class NumberedSourceSpout(SparkSourceSpout):
    """A spout on a source whose rows are named by a number that says where Spark read them."""

    _fields: Fields
    """The columns that are emitted, set by a subclass. Their number follows them in a row that is kept."""

    def selected(self, frame: DataFrame) -> DataFrame:
        """Returns a frame with these columns alone."""
        return frame.select(*(f"`{name.replace('`', '``')}`" for name in self._fields))

    def tuple_streams(self) -> Mapping[str, Fields]:
        """Returns the default stream."""
        return {DEFAULT_STREAM: self._fields}

    def columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows without their numbers."""
        import pyarrow as pa

        width = len(self._fields)
        return (
            rows if rows.num_columns == width else pa.RecordBatch.from_arrays(rows.columns[:width], list(self._fields))
        )

    def keep(self, roots: Sequence[int], rows: pa.RecordBatch) -> None:
        """Keeps rows, each with its number."""
        super().keep(roots, rows)
        for root in roots:
            self._rows.open[root].row[_ROOT] = root

    def message_id(self, row: Mapping[str, Any]) -> Any:
        """Returns the number."""
        return int(row[_ROOT])

    def dead_letter(self, message_id: Any, row: Mapping[str, Any], reason: str, failures: int) -> Sequence[Any]:
        """Returns the tuple of a row that is given up."""
        plain = {name: value for name, value in row.items() if name != _ROOT}
        return super().dead_letter(message_id, plain, reason, failures)
