"""Trident: topologies of operations on batches that are committed in order, as in Storm's `org.apache.storm.trident`.

>>> topology = TridentTopology()
>>> lines = topology.new_stream("lines", FixedBatchSpout("line", 2, [["to be"], ["or not to be"]]))
>>> words = lines.flat_map(lambda tup: tup["line"].split(), "word")
>>> counts = words.group_by("word").aggregate(Count(), "count")
>>> built = topology.build()

Calls make the graph of the Streams API (`storm_on_spark.streams`), with operations on rows (`operations/`). `graph/`
and `lowering/` add batches to its lowering, `spouts/` has the spouts and the coordinator of batches.
"""

from __future__ import annotations

from storm_on_spark.trident.batches import TransactionAttempt
from storm_on_spark.trident.building.joining import JoinOutFieldsMode, JoinType
from storm_on_spark.trident.building.stream import ChainedAggregation, GroupedStream, Stream, TridentState
from storm_on_spark.trident.building.topology import TridentTopology
from storm_on_spark.trident.operations.builtin import Count, Debug, Equals, FilterNull, FirstN, Max, Min, Negate, Sum
from storm_on_spark.trident.operations.functions import (
    Aggregator,
    BaseAggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    MultiReducer,
    ReducerAggregator,
    TridentCollector,
)
from storm_on_spark.trident.spouts.fixed import FixedBatchSpout
from storm_on_spark.trident.spouts.interfaces import (
    BatchCoordinator,
    CommitterEmitter,
    Emitter,
    IBatchSpout,
    ICommitterTridentSpout,
    ITridentSpout,
)
from storm_on_spark.trident.spouts.partitioned import (
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    OpaquePartitionedEmitter,
    PartitionCoordinator,
    PartitionedEmitter,
)

__all__ = [
    "Aggregator",
    "BaseAggregator",
    "BaseFilter",
    "BaseFunction",
    "BatchCoordinator",
    "ChainedAggregation",
    "CombinerAggregator",
    "CommitterEmitter",
    "Count",
    "Debug",
    "Emitter",
    "Equals",
    "FilterNull",
    "FirstN",
    "FixedBatchSpout",
    "GroupedStream",
    "IBatchSpout",
    "ICommitterTridentSpout",
    "IOpaquePartitionedTridentSpout",
    "IPartitionedTridentSpout",
    "ITridentSpout",
    "JoinOutFieldsMode",
    "JoinType",
    "Max",
    "Min",
    "MultiReducer",
    "Negate",
    "OpaquePartitionedEmitter",
    "PartitionCoordinator",
    "PartitionedEmitter",
    "ReducerAggregator",
    "Stream",
    "Sum",
    "TransactionAttempt",
    "TridentCollector",
    "TridentState",
    "TridentTopology",
]
