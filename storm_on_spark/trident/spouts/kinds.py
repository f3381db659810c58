"""The kinds of spouts as one: a coordinator and emitters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.trident.spouts.interfaces import BatchCoordinator, Collects, Emitter, IBatchSpout, ITridentSpout
from storm_on_spark.trident.spouts.partitioned import (
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    OpaquePartitionedSpout,
    PartitionedSpout,
)
from storm_on_spark.trident.spouts.rich import RichSpoutInBatches

if TYPE_CHECKING:
    from storm_on_spark.api.streams.fields import Fields
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.batches import TransactionAttempt


class _OfBatchSpout(BatchCoordinator):
    def __init__(self, spout: IBatchSpout) -> None:
        self._spout = spout

    def initialize_transaction(self, txid: int, previous: Any, current: Any) -> None:
        return None

    def exhausted(self, txid: int) -> bool:
        return self._spout.exhausted(txid)


class _FromBatchSpout(Emitter):
    def __init__(self, spout: IBatchSpout) -> None:
        self._spout = spout

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Collects) -> None:
        self._spout.emit_batch(attempt.txid, collector)

    def success(self, attempt: TransactionAttempt) -> None:
        self._spout.ack(attempt.txid)

    def close(self) -> None:
        self._spout.close()


class BatchSpoutAsTrident(ITridentSpout):
    """An `IBatchSpout` in two parts."""

    def __init__(self, spout: IBatchSpout) -> None:
        self._spout = spout

    def get_coordinator(  # noqa: D102
        self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext
    ) -> BatchCoordinator:
        return _OfBatchSpout(self._spout)

    def get_emitter(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> Emitter:  # noqa: D102
        self._spout.open(conf, context)
        return _FromBatchSpout(self._spout)

    def get_output_fields(self) -> Fields:  # noqa: D102
        return self._spout.get_output_fields()

    def get_component_configuration(self) -> Mapping[str, Any] | None:  # noqa: D102
        return self._spout.get_component_configuration()


def as_trident(spout: Any, where: str) -> ITridentSpout:
    """Returns any kind of spout as one of coordinator and emitters.

    Raises:
        InvalidTopologyError: it is none that can emit batches.
    """
    if isinstance(spout, ITridentSpout):
        return spout
    if isinstance(spout, IBatchSpout):
        return BatchSpoutAsTrident(spout)
    if isinstance(spout, IPartitionedTridentSpout):
        return PartitionedSpout(spout)
    if isinstance(spout, IOpaquePartitionedTridentSpout):
        return OpaquePartitionedSpout(spout)
    if isinstance(spout, BaseRichSpout):
        return RichSpoutInBatches(spout)
    raise InvalidTopologyError(
        f"{where} takes an IBatchSpout, an ITridentSpout, a partitioned one or a plain spout, not {kind_of(spout)}"
    )
