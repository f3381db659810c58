"""Storm on Spark: Storm topologies in Python, run by Spark Structured Streaming.

The names of `storm_on_spark.api` are here too. `LocalCluster` and `compile_topology` need pyspark, which is
imported when one of them is first asked for: writing a topology, or testing a bolt, starts in milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark.api import (
    DEFAULT_STREAM,
    AllGrouping,
    AlreadyAliveError,
    BaseBasicBolt,
    BaseComponent,
    BaseRichBolt,
    BaseRichSpout,
    BaseStatefulBolt,
    BaseTaskHook,
    BaseTickTupleAwareRichBolt,
    BasicOutputCollector,
    BatchBolt,
    BatchOutputCollector,
    BatchSpout,
    BatchSpoutOutputCollector,
    BoltAckInfo,
    BoltDeclarer,
    BoltExecuteInfo,
    BoltFailInfo,
    CheckpointError,
    ComponentConfigurationDeclarer,
    ComponentError,
    ComponentInfo,
    ComponentKind,
    ComponentSpec,
    Config,
    ConfigError,
    CustomGrouping,
    CustomStreamGrouping,
    DirectGrouping,
    EmitInfo,
    ErrorInfo,
    FailedException,
    Fields,
    FieldsGrouping,
    GlobalGrouping,
    GlobalStreamId,
    Grouping,
    IBasicBolt,
    InvalidTopologyError,
    IRichBolt,
    IRichSpout,
    IStatefulBolt,
    KeyValueState,
    LocalOrShuffleGrouping,
    NoneGrouping,
    NotAliveError,
    OutputCollector,
    OutputFieldsDeclarer,
    PartialKeyGrouping,
    ReportedFailedException,
    SetupError,
    ShuffleGrouping,
    SpoutAckInfo,
    SpoutDeclarer,
    SpoutFailInfo,
    SpoutOutputCollector,
    StormError,
    StreamSpec,
    Topology,
    TopologyBuilder,
    TopologyContext,
    TopologyFailedError,
    TopologyInfo,
    Tuple,
    TupleError,
    UnknownFieldError,
    Values,
)

if TYPE_CHECKING:
    from storm_on_spark.spark import LocalCluster, compile_topology

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_STREAM",
    "AllGrouping",
    "AlreadyAliveError",
    "BaseBasicBolt",
    "BaseComponent",
    "BaseRichBolt",
    "BaseRichSpout",
    "BaseStatefulBolt",
    "BaseTaskHook",
    "BaseTickTupleAwareRichBolt",
    "BasicOutputCollector",
    "BatchBolt",
    "BatchOutputCollector",
    "BatchSpout",
    "BatchSpoutOutputCollector",
    "BoltAckInfo",
    "BoltDeclarer",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "CheckpointError",
    "ComponentConfigurationDeclarer",
    "ComponentError",
    "ComponentInfo",
    "ComponentKind",
    "ComponentSpec",
    "Config",
    "ConfigError",
    "CustomGrouping",
    "CustomStreamGrouping",
    "DirectGrouping",
    "EmitInfo",
    "ErrorInfo",
    "FailedException",
    "Fields",
    "FieldsGrouping",
    "GlobalGrouping",
    "GlobalStreamId",
    "Grouping",
    "IBasicBolt",
    "IRichBolt",
    "IRichSpout",
    "IStatefulBolt",
    "InvalidTopologyError",
    "KeyValueState",
    "LocalCluster",
    "LocalOrShuffleGrouping",
    "NoneGrouping",
    "NotAliveError",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "PartialKeyGrouping",
    "ReportedFailedException",
    "SetupError",
    "ShuffleGrouping",
    "SpoutAckInfo",
    "SpoutDeclarer",
    "SpoutFailInfo",
    "SpoutOutputCollector",
    "StormError",
    "StreamSpec",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "TopologyFailedError",
    "TopologyInfo",
    "Tuple",
    "TupleError",
    "UnknownFieldError",
    "Values",
    "__version__",
    "compile_topology",
]

_NEED_SPARK = ("LocalCluster", "compile_topology")


def __getattr__(name: str) -> Any:
    if name not in _NEED_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from storm_on_spark import spark

    value = getattr(spark, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
