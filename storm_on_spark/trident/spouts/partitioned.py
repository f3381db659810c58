"""Spouts whose source has partitions, such as Kafka: transactional ones, and opaque ones.

Where each batch begins and ends in each partition is kept with the emitters, in the topology's checkpoint.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import cloudpickle

from storm_on_spark.trident.spouts.interfaces import (
    BatchCoordinator,
    Collects,
    Emitter,
    ITridentSpout,
    TridentSpout,
)

if TYPE_CHECKING:
    from storm_on_spark.api.streams.fields import Fields
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.batches import TransactionAttempt


class PartitionCoordinator(ABC):
    """Storm's `Coordinator` of partitioned spouts; in one task."""

    @abstractmethod
    def get_partitions_for_batch(self) -> Any:
        """Returns the partitions that a batch is made of, in any form that the emitters understand; picklable."""

    def is_ready(self, txid: int) -> bool:
        """Returns whether the batch `txid` may begin."""
        return True

    def exhausted(self, txid: int) -> bool:
        """Returns whether neither the batch `txid` nor a later one will have tuples: a finite spout returns True."""
        return False

    def close(self) -> None:  # noqa: B027
        """Called when the spout stops, but not if its process is killed."""


class _PartitionEmitter(ABC):
    """What the emitters of partitioned spouts have in common."""

    @abstractmethod
    def get_ordered_partitions(self, all_partitions: Any) -> Sequence[Any]:
        """Returns the partitions in an order that is the same in all tasks; each is hashable and picklable.

        Args:
            all_partitions: what the coordinator returned.
        """

    def refresh_partitions(self, partitions: Sequence[Any]) -> None:  # noqa: B027
        """Called with this task's partitions, when they have changed."""

    def close(self) -> None:  # noqa: B027
        """Not called on Spark, like `cleanup` of bolts: nobody knows which worker will not be used again."""


class PartitionedEmitter(_PartitionEmitter):
    """Storm's `IPartitionedTridentSpout.Emitter`."""

    @abstractmethod
    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collects, partition: Any, last_metadata: Any
    ) -> Any:
        """Emits the tuples of a partition that come after those of the batch before.

        Args:
            attempt: of the batch.
            collector: emits tuples.
            partition: one of this task's.
            last_metadata: what was returned for the partition's batch before; None for the first.

        Returns:
            What tells the same tuples again, such as their positions; picklable.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collects, partition: Any, metadata: Any
    ) -> None:
        """Emits the tuples of a batch again: exactly those that `metadata` tells."""


class OpaquePartitionedEmitter(_PartitionEmitter):
    """Storm's `IOpaquePartitionedTridentSpout.Emitter`."""

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collects, partition: Any, last_metadata: Any
    ) -> Any:
        """Emits tuples of a partition that come after those of the last batch that was committed or is under way.

        A batch that is attempted again may have other tuples; no tuple is in two batches that are committed.

        Args:
            attempt: of the batch.
            collector: emits tuples.
            partition: one of this task's.
            last_metadata: what was returned for the partition's batch before; None for the first.

        Returns:
            What tells where the batch ends; picklable.
        """


class IPartitionedTridentSpout(TridentSpout):
    """A transactional spout: a batch that is attempted again has the same tuples."""

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionCoordinator:
        """Returns the part that knows the partitions."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        """Returns the part that emits."""


class IOpaquePartitionedTridentSpout(TridentSpout):
    """An opaque spout: a batch that is attempted again may have other tuples."""

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionCoordinator:
        """Returns the part that knows the partitions."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        """Returns the part that emits."""


Told = list[tuple[int, bytes]]
"""What the coordinator said of the partitions, each time with a number, pickled. The last one is that of the batch."""


class _Coordinates(BatchCoordinator):
    """Tells emitters the partitions of each batch; those of a batch stay the same.

    It tells all that was said since the last batch that is committed: so each task learns of all changes, in their
    order, also if one of them failed before.
    """

    def __init__(self, coordinator: PartitionCoordinator, again: bool) -> None:
        self._coordinator = coordinator
        self._again = again
        self._told: Told = []
        #: Batch -> the number of its partitions.
        self._numbers: dict[int, int] = {}

    def initialize_transaction(self, txid: int, previous: Any, current: Any) -> Any:
        if current is not None and self._again:
            return current
        # Pickled, as the user may change the object later.
        said = cloudpickle.dumps(self._coordinator.get_partitions_for_batch())
        number = self._told[-1][0] if self._told else 0
        if not self._told or said != self._told[-1][1]:
            number += 1
            self._told.append((number, said))
        self._numbers[txid] = number
        return list(self._told)

    def success(self, txid: int) -> None:
        number = self._numbers.get(txid, 0)
        self._numbers = {later: known for later, known in self._numbers.items() if later > txid}
        self._told = [told for told in self._told if told[0] >= number]

    def is_ready(self, txid: int) -> bool:
        return self._coordinator.is_ready(txid)

    def exhausted(self, txid: int) -> bool:
        return self._coordinator.exhausted(txid)

    def close(self) -> None:
        self._coordinator.close()


class Partitions:
    """Which partitions are this task's, and what is known of their batches.

    A partition stays with its task for good, as what is known of it is there. New ones go to the tasks with the fewest.
    """

    def __init__(self, context: TopologyContext) -> None:
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        #: Partition -> batch -> metadata.
        self.known: dict[Any, dict[int, Any]] = {}
        #: Partition -> the task that has it: the same in all tasks.
        self._owners: dict[Any, int] = {}
        #: The number of what was told last.
        self._heard = 0
        #: What the emitter was told last, and what was ordered last. A new emitter has been told nothing.
        self._refreshed: list[Any] | None = None
        self._ordered: tuple[int, list[Any]] = (0, [])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_refreshed": None, "_ordered": (0, [])}

    def mine(self, emitter: _PartitionEmitter, told: Told) -> Sequence[Any]:
        """Returns the partitions of this task in a batch."""
        last, _ = told[-1]
        for number, said in told:
            if number > self._heard or (number == last and number != self._ordered[0]):
                partitions = pickle.loads(said)  # noqa: S301 # of our own coordinator
                self._ordered = number, list(emitter.get_ordered_partitions(partitions))
            if number > self._heard:
                self._share_out(self._ordered[1])
                self._heard = number
        mine = [partition for partition in self._ordered[1] if self._owners[partition] == self._index]
        if mine != self._refreshed:
            emitter.refresh_partitions(mine)
            self._refreshed = mine
        return mine

    def _share_out(self, ordered: Sequence[Any]) -> None:
        load = Counter(self._owners[partition] for partition in ordered if partition in self._owners)
        for partition in ordered:
            if partition not in self._owners:
                task = min(range(self._tasks), key=lambda task: (load[task], task))
                self._owners[partition] = task
                load[task] += 1

    def before(self, partition: Any, txid: int) -> Any:
        """Returns the metadata of the last batch before `txid`."""
        known = self.known.get(partition, {})
        earlier = [number for number in known if number < txid]
        return known[max(earlier)] if earlier else None

    def forget(self, txid: int) -> None:
        """Forgets batches before `txid`, of which each partition's last one is needed no more once `txid` is known."""
        for known in self.known.values():
            last = max((number for number in known if number <= txid), default=txid)
            for number in [number for number in known if number < last]:
                del known[number]


_E = TypeVar("_E", bound=_PartitionEmitter)


class KeepsPartitions(Emitter, Generic[_E]):
    """An emitter of which only `partitions` is saved."""

    def __init__(self, emitter: _E, context: TopologyContext) -> None:
        self.emitter: _E = emitter
        self.partitions = Partitions(context)

    def success(self, attempt: TransactionAttempt) -> None:
        """Forgets what is needed no more."""
        self.partitions.forget(attempt.txid)

    def close(self) -> None:
        """Closes the user's emitter."""
        self.emitter.close()


class _Transactional(KeepsPartitions[PartitionedEmitter]):
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Collects) -> None:
        txid = attempt.txid
        for partition in self.partitions.mine(self.emitter, metadata):
            known = self.partitions.known.setdefault(partition, {})
            if txid in known:
                self.emitter.emit_partition_batch(attempt, collector, partition, known[txid])
            else:
                last = self.partitions.before(partition, txid)
                known[txid] = self.emitter.emit_partition_batch_new(attempt, collector, partition, last)


class _Opaque(KeepsPartitions[OpaquePartitionedEmitter]):
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Collects) -> None:
        txid = attempt.txid
        for known in self.partitions.known.values():
            # What comes after a batch that is attempted again comes again, too.
            for number in [number for number in known if number >= txid]:
                del known[number]
        for partition in self.partitions.mine(self.emitter, metadata):
            last = self.partitions.before(partition, txid)
            made = self.emitter.emit_partition_batch(attempt, collector, partition, last)
            self.partitions.known.setdefault(partition, {})[txid] = made


_S = TypeVar("_S", bound="IPartitionedTridentSpout | IOpaquePartitionedTridentSpout")


class _InTwoParts(ITridentSpout, Generic[_S]):
    """What both kinds of partitioned spouts take from the user's spout."""

    def __init__(self, spout: _S) -> None:
        self._spout = spout

    def get_output_fields(self) -> Fields:
        return self._spout.get_output_fields()

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        return self._spout.get_component_configuration()


class PartitionedSpout(_InTwoParts[IPartitionedTridentSpout]):
    """A transactional partitioned spout in two parts."""

    def get_coordinator(  # noqa: D102
        self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext
    ) -> BatchCoordinator:
        return _Coordinates(self._spout.get_coordinator(conf, context), True)

    def get_emitter(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> Emitter:  # noqa: D102
        return _Transactional(self._spout.get_emitter(conf, context), context)


class OpaquePartitionedSpout(_InTwoParts[IOpaquePartitionedTridentSpout]):
    """An opaque partitioned spout in two parts."""

    def get_coordinator(  # noqa: D102
        self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext
    ) -> BatchCoordinator:
        return _Coordinates(self._spout.get_coordinator(conf, context), False)

    def get_emitter(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> Emitter:  # noqa: D102
        return _Opaque(self._spout.get_emitter(conf, context), context)
