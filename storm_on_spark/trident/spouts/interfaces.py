"""The kinds of spouts, with Storm's names.

What a spout keeps in attributes that can be pickled is as exact as the state of a bolt: it is restored after a crash,
once the spout was opened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from storm_on_spark.api.config import Config

if TYPE_CHECKING:
    from storm_on_spark.api.streams.fields import Fields
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.batches import TransactionAttempt


class Collects(Protocol):
    """What spouts emit tuples with: `TridentCollector`."""

    def emit(self, values: Sequence[Any]) -> None:
        """Emits a tuple."""

    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status."""


class BatchCoordinator(ABC):
    """Storm's `ITridentSpout.BatchCoordinator`: decides what belongs to each batch; in one task."""

    @abstractmethod
    def initialize_transaction(self, txid: int, previous: Any, current: Any) -> Any:
        """Returns what the emitters have to know of a batch; picklable.

        Args:
            txid: the batch's.
            previous: what was returned for the batch before; None for the first.
            current: what was returned for this batch in an earlier attempt; None in the first.
        """

    def success(self, txid: int) -> None:  # noqa: B027
        """Called when a batch is committed."""

    def is_ready(self, txid: int) -> bool:
        """Returns whether the batch `txid` may begin."""
        return True

    def exhausted(self, txid: int) -> bool:
        """Returns whether neither the batch `txid` nor a later one will have tuples: a finite spout returns True."""
        return False

    def close(self) -> None:  # noqa: B027
        """Called when the spout stops, but not if its process is killed."""


class Emitter(ABC):
    """Storm's `ITridentSpout.Emitter`: emits the tuples of each batch; in any number of tasks."""

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Collects) -> None:
        """Emits this task's tuples of a batch.

        Args:
            attempt: of the batch.
            metadata: what the coordinator returned for it.
            collector: emits tuples.
        """

    def success(self, attempt: TransactionAttempt) -> None:  # noqa: B027
        """Called when a batch is committed."""

    def close(self) -> None:  # noqa: B027
        """Not called on Spark, like `cleanup` of bolts: nobody knows which worker will not be used again."""


class CommitterEmitter(Emitter):
    """Storm's `ICommitterTridentSpout.Emitter`: it takes part in the commit of a batch."""

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Called when a batch is being committed: batches in order, each at least once."""


class TridentSpout(ABC):
    """What the kinds of spouts have in common."""

    @abstractmethod
    def get_output_fields(self) -> Fields:
        """Returns the fields of the tuples."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns configuration for the tasks that emit; None for nothing special."""
        return None


class ITridentSpout(TridentSpout):
    """A spout in two parts: one that decides what is in a batch, and one that emits it."""

    @abstractmethod
    def get_coordinator(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> BatchCoordinator:
        """Returns the part that decides; called in one task."""

    @abstractmethod
    def get_emitter(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> Emitter:
        """Returns the part that emits; called in each task."""


class ICommitterTridentSpout(ITridentSpout):
    """A spout whose emitters are `CommitterEmitter`s."""


class IBatchSpout(TridentSpout):
    """A spout that emits a batch at a time. A batch that is emitted again should have the same tuples.

    Example:
        >>> from storm_on_spark.api import Fields
        >>> class Hundreds(IBatchSpout):
        ...     def emit_batch(self, batch_id, collector):
        ...         for number in range(100):
        ...             collector.emit([100 * (batch_id - 1) + number])
        ...     def exhausted(self, batch_id):
        ...         return batch_id > 10
        ...     def get_output_fields(self):
        ...         return Fields("number")
    """

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns configuration for the tasks that emit: one task, as each emits the whole of a batch."""
        return {Config.TOPOLOGY_MAX_TASK_PARALLELISM: 1}

    def open(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once in every task, before anything else."""

    @abstractmethod
    def emit_batch(self, batch_id: int, collector: Collects) -> None:
        """Emits the tuples of a batch; batches are numbered from 1."""

    def ack(self, batch_id: int) -> None:
        """Called when a batch is committed."""

    def exhausted(self, batch_id: int) -> bool:
        """Returns whether neither the batch nor a later one will have tuples: a finite spout returns True.

        It is asked in another task than the one that emits, so it can know no more than the batch's number.
        """
        return False

    def close(self) -> None:
        """Not called on Spark, like `cleanup` of bolts: nobody knows which worker will not be used again."""
