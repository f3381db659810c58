"""Bolts whose tuples the driver writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.streams.fields import Fields

if TYPE_CHECKING:
    import pyarrow


class SinkTransaction(NamedTuple):
    """Stored by a sink with the rows of a micro-batch, to recognise that micro-batch when it runs again."""

    micro_batch: int
    plan: int
    """The fingerprint of its plan: 63 bits. It stays the same when the micro-batch runs again after a crash, and
    differs when the micro-batch is planned again from an older checkpoint."""


class Plans(Protocol):
    """The micro-batches that a checkpoint has planned."""

    @property
    def last(self) -> int:
        """The number of the last one; -1 if there is none."""

    def of(self, micro_batch: int) -> int | None:
        """Returns the fingerprint of a plan; None if the checkpoint does not have it or no longer has it."""


@dataclass(frozen=True)
class SinkContext:
    """The context in which the driver writes to a sink.

    Args:
        spark: the query's SparkSession; changes to its settings affect this topology only.
        writer: names topology and component; differs if the topology starts without its checkpoint.
        micro_batch: its number, the same when it is executed again; -1 when the sink is opened.
        inputs: the fields of each stream that the bolt subscribes to.
        plan: the fingerprint of the micro-batch's plan, see `SinkTransaction`.
        plans: the plans of the checkpoint when the sink is opened; None if there is no checkpoint.
        durable: whether written data must survive the loss of the machine when `write` returns.
        report: takes an error that doesn't end the topology; the component has it once `write` returns.
        refused: takes the numbers of the rows that the target refuses, each with the reason, before anything is
            written, and raises; None if the sink itself decides what becomes of them.
    """

    spark: Any
    writer: str
    micro_batch: int = -1
    inputs: tuple[Fields, ...] = ()
    plan: int = 0
    plans: Plans | None = None
    durable: bool = False
    report: Callable[[str], None] = field(default=lambda message: None, compare=False)
    refused: Callable[[Sequence[tuple[int, str]]], None] | None = field(default=None, compare=False)

    @property
    def transaction(self) -> SinkTransaction:
        """The transaction that the sink stores with the rows it writes now."""
        return SinkTransaction(self.micro_batch, self.plan or 0)

    def is_written(self, last: SinkTransaction | None, where: str) -> bool:
        """Returns whether an earlier attempt wrote the micro-batch before the driver died.

        Args:
            last: the transaction that the sink stored with the last write of this `writer`; None for nothing.
            where: the target, for the error, such as "the table orders".

        Raises:
            CheckpointError: the sink has a later micro-batch, or other tuples under this number. The checkpoint is then
                older than the sink, and treating this micro-batch as written would lose it.

        Example:
            >>> context = SinkContext(None, "count-1/table", 7, plan=1234)
            >>> [context.is_written(SinkTransaction(*found), "the table") for found in ((6, 99), (7, 1234))]
            [False, True]
            >>> context.is_written(SinkTransaction(9, 55), "the table orders")
            Traceback (most recent call last):
            storm_on_spark.api.errors.CheckpointError: the table orders has micro-batch 9 of count-1/table, and the ...
        """
        if last is None or last.micro_batch < self.micro_batch:
            return False
        if last != self.transaction:
            raise self._behind(last, where, self.micro_batch - 1)
        return True

    def check_history(self, last: SinkTransaction | None, where: str) -> None:
        """Checks, when a sink is opened, that all its contents belong to the checkpoint's history.

        Args:
            last: the transaction that the sink stored with the last write of this `writer`; None for nothing.
            where: the target, for the error.

        Raises:
            CheckpointError: the checkpoint is older than the sink.
        """
        if last is None or self.plans is None:
            return
        # Spark forgets plans committed over a hundred micro-batches ago.
        known = self.plans.of(last.micro_batch)
        if last.micro_batch > self.plans.last or known not in (None, last.plan):
            raise self._behind(last, where, self.plans.last)

    def _behind(self, last: SinkTransaction, where: str, planned: int) -> CheckpointError:
        difference = "has only come to" if last.micro_batch > planned + 1 else "has planned other tuples after"
        return CheckpointError(
            f"{where} has micro-batch {last.micro_batch} of {self.writer}, and the checkpoint {difference} micro-batch "
            f"{planned}: it is older than what was written with it. An older copy was put back, or the machine lost "
            "power. Nothing was written now. Put back the checkpoint that belongs to it, or start with "
            "--reset-checkpoint: then bolts begin without state, and what spouts emit again is written again"
        )


@runtime_checkable
class WritesByNumber(Protocol):
    """A bolt whose tasks write to an outside system, under numbers that are part of their state.

    An older checkpoint would reuse these numbers for other tuples. Therefore the driver opens the bolt like a
    `SinkBolt`, and passes it each plan before the tasks execute it.
    """

    def open_sink(self, context: SinkContext) -> None:
        """See `SinkBolt.open_sink`."""

    def note_plan(self, context: SinkContext) -> None:
        """Stores `context.transaction` where the tasks write. The plan is on disk, and nothing has been executed yet.

        Raises:
            CheckpointError: the checkpoint is older than the written data.
        """


class SinkBolt(BaseRichBolt):
    """A bolt whose tuples the driver writes: in each micro-batch, those of all its tasks at once.

    Tasks collect rows, and `take_written` hands them over at the end of each micro-batch. The driver calls `write` with
    all of them before the micro-batch is committed, so the spout's `ack` for a tuple that the task acked comes only
    after the tuple is written. If the driver dies between `write` and the commit, the micro-batch is executed again,
    and `write` is called again with the same `SinkContext.transaction`. A sink writes each micro-batch once if it
    stores this transaction atomically with the rows, and calls `SinkContext.is_written` first.

    `execute` must not raise once it has recorded anything of the tuple, because earlier tuples are not executed again.
    """

    stateless: ClassVar[bool | None] = True
    needs_spark: ClassVar[bool] = True
    """Whether `open_sink` and `write` use `SinkContext.spark`, which is None in a process without Spark."""

    def open_sink(self, context: SinkContext) -> None:
        """Called in the driver before spouts open, to check that the sink can be written to.

        Raises:
            SetupError: the sink can't be written to.
            CheckpointError: see `SinkContext.check_history`.
        """

    def take_batch(self, batch: pyarrow.RecordBatch) -> bool:
        """Takes tuples that arrived as columns, either all or none; called in the task instead of `execute`.

        Args:
            batch: one row per tuple, one column per field of the stream.

        Returns:
            True if it took them; all are then acked. Otherwise `execute` is called with each.
        """
        return False

    @abstractmethod
    def take_written(self) -> bytes:
        """Returns the data that the task has collected since the last call, empty for none; called in the task."""

    @abstractmethod
    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Writes the data that the tasks handed over in a micro-batch; called in the driver.

        An exception ends the topology, and the micro-batch is not committed.

        Args:
            written: ordered by task number, and for one task by execution.
            context: the session and the micro-batch.
        """
