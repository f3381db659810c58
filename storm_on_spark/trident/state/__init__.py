"""State: where batches leave what they have counted, each exactly once; Storm's `org.apache.storm.trident.state`.

The rules of what a batch does that comes again are in `values.py`, without I/O. Maps apply them to backing maps.
"""

from __future__ import annotations

from storm_on_spark.trident.state.caches import CachedBatchReadsMap, CachedMap, MicroBatchIBackingMap
from storm_on_spark.trident.state.checkpoint import (
    CheckpointMapState,
    CheckpointMapStateFactory,
    MemoryMapState,
    StoreBackingMap,
)
from storm_on_spark.trident.state.interfaces import (
    BaseQueryFunction,
    BaseStateUpdater,
    IBackingMap,
    ITupleCollection,
    MapState,
    QueryFunction,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
    ReadOnlyState,
    RemovableMapState,
    Snapshottable,
    State,
    StateFactory,
    StateUpdater,
    StoredStateFactory,
    ValueUpdater,
)
from storm_on_spark.trident.state.maps import NonTransactionalMap, OpaqueMap, SnapshottableMap, TransactionalMap, map_of
from storm_on_spark.trident.state.queries import MapGet, SnapshotGet, TupleCollectionGet
from storm_on_spark.trident.state.updaters import (
    CombinerValueUpdater,
    FunctionUpdater,
    ReducerValueUpdater,
    ReplaceUpdater,
)
from storm_on_spark.trident.state.values import OpaqueValue, StaleBatchError, StateType, TransactionalValue

__all__ = [
    "BaseQueryFunction",
    "BaseStateUpdater",
    "CachedBatchReadsMap",
    "CachedMap",
    "CheckpointMapState",
    "CheckpointMapStateFactory",
    "CombinerValueUpdater",
    "FunctionUpdater",
    "IBackingMap",
    "ITupleCollection",
    "MapGet",
    "MapState",
    "MemoryMapState",
    "MicroBatchIBackingMap",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "QueryFunction",
    "ReadOnlyMapState",
    "ReadOnlySnapshottable",
    "ReadOnlyState",
    "ReducerValueUpdater",
    "RemovableMapState",
    "ReplaceUpdater",
    "SnapshotGet",
    "Snapshottable",
    "SnapshottableMap",
    "StaleBatchError",
    "State",
    "StateFactory",
    "StateType",
    "StateUpdater",
    "StoreBackingMap",
    "StoredStateFactory",
    "TransactionalMap",
    "TransactionalValue",
    "TupleCollectionGet",
    "ValueUpdater",
    "map_of",
]
