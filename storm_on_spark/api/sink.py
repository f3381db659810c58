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
    """What a sink stores with the rows of a micro-batch, to recognise that micro-batch when it runs again."""

    micro_batch: int
    plan: int
    """The fingerprint of its plan: 63 bits. It stays the same when the micro-batch runs again after a crash, and
    differs when the micro-batch is planned again from an older checkpoint."""


class Plans(Protocol):
    """The micro-batches that a checkpoint has planned."""

    @property
    def last(self) -> int:
        """The last one; -1 if there is none."""

    def of(self, micro_batch: int) -> int | None:
        """Returns the fingerprint of a plan; None if the checkpoint does not have it, or no longer has it."""


@dataclass(frozen=True)
class SinkContext:
    """What a sink is written with, in the driver.

    Args:
        spark: the query's SparkSession; settings that are changed in it concern this topology alone.
        writer: names topology and component; another one if the topology starts without its checkpoint.
        micro_batch: its number, the same when it is executed again; -1 when the sink is opened.
        inputs: the fields of each stream that the bolt subscribes to.
        plan: the fingerprint of what was planned for the micro-batch, see `SinkTransaction`.
        plans: what the checkpoint has planned, when the sink is opened; None where there is no checkpoint.
        durable: whether what is written must survive the loss of the machine when `write` returns.
        report: takes an error that doesn't end the topology; it is among those of the component once `write` returns.
        refused: takes the numbers of the rows that the target refuses, each with the reason, before anything is
            written, and raises; None where the sink itself says what becomes of them.
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
        """What the sink stores with what it writes now."""
        return SinkTransaction(self.micro_batch, self.plan or 0)

    def is_written(self, last: SinkTransaction | None, where: str) -> bool:
        """Returns whether an earlier attempt, after which the driver died, has written the micro-batch.

        Args:
            last: what the sink stored with what this `writer` wrote last; None for nothing.
            where: what is written to, for the error, such as "the table orders".

        Raises:
            CheckpointError: the sink has a later micro-batch, or other tuples under this number. So the checkpoint is
                older than the sink, and this micro-batch would be lost if it was taken for written.

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
        """Checks, when a sink is opened, that everything in it belongs to the checkpoint's history.

        Args:
            last: what the sink stored with what this `writer` wrote last; None for nothing.
            where: what is written to, for the error.

        Raises:
            CheckpointError: the checkpoint is older than the sink.
        """
        if last is None or self.plans is None:
            return
        # Spark forgets plans that were committed a hundred micro-batches ago.
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
    """A bolt whose tasks write outside themselves, under numbers that are part of their state.

    An older checkpoint uses these numbers again, for other tuples. So the driver opens the bolt like a `SinkBolt`, and
    tells it each plan before the tasks execute it.
    """

    def open_sink(self, context: SinkContext) -> None:
        """As `SinkBolt.open_sink`."""

    def note_plan(self, context: SinkContext) -> None:
        """Keeps `context.transaction` where the tasks write; the plan is on the disk, and nothing was executed yet.

        Raises:
            CheckpointError: the checkpoint is older than what was written.
        """


class SinkBolt(BaseRichBolt):
    """A bolt whose tuples the driver writes, those of all its tasks in a micro-batch at once.

    Tasks collect what is to be written, and `take_written` hands it over at the end of each micro-batch. The driver
    calls `write` with all of it before the micro-batch is committed, so a tuple that the task acked is acked to its
    spout only when it is written. If the driver dies between `write` and the commit, the micro-batch is executed again
    and `write` is called again with the same `SinkContext.transaction`. A sink that keeps this beside what it writes,
    in one transaction, and asks `SinkContext.is_written` first, writes each micro-batch once.

    `execute` may not raise once it has noted something of the tuple, for the tuples before are not executed again.
    """

    stateless: ClassVar[bool | None] = True
    needs_spark: ClassVar[bool] = True
    """Whether `open_sink` and `write` use `SinkContext.spark`, which is None in a process without Spark."""

    def open_sink(self, context: SinkContext) -> None:
        """Called in the driver before spouts open, to check what can't be written to.

        Raises:
            SetupError: nothing could be written.
            CheckpointError: see `SinkContext.check_history`.
        """

    def take_batch(self, batch: pyarrow.RecordBatch) -> bool:
        """Takes tuples that arrived as columns, all or none; called in the task instead of `execute`.

        Args:
            batch: one row per tuple, one column per field of the stream.

        Returns:
            Whether it took them: then all are acked. If not, `execute` is called with each.
        """
        return False

    @abstractmethod
    def take_written(self) -> bytes:
        """Returns what the task has collected since the last call, empty for nothing; called in the task."""

    @abstractmethod
    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Writes what the tasks handed over in a micro-batch; called in the driver.

        What it raises ends the topology, and the micro-batch is not committed.

        Args:
            written: by task number, those of one task in the order of its executions.
            context: the session, and which micro-batch.
        """
