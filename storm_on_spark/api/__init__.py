"""Storm's programming model: the classes from which users write a topology. Needs only the standard library."""

from __future__ import annotations

from storm_on_spark.api.base_hook import BaseTaskHook
from storm_on_spark.api.builder import (
    BoltDeclarer,
    ComponentConfigurationDeclarer,
    SpoutDeclarer,
    TopologyBuilder,
)
from storm_on_spark.api.collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    BatchSpoutOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from storm_on_spark.api.component import (
    BaseBasicBolt,
    BaseComponent,
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
    BatchSpout,
    IBasicBolt,
    IRichBolt,
    IRichSpout,
)
from storm_on_spark.api.config import Config
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.custom_grouping import CustomGrouping, CustomStreamGrouping
from storm_on_spark.api.errors import (
    AlreadyAliveError,
    CheckpointError,
    ComponentError,
    ConfigError,
    FailedException,
    InvalidTopologyError,
    NotAliveError,
    ReportedFailedException,
    SetupError,
    StormError,
    TopologyFailedError,
    TupleError,
    UnknownFieldError,
)
from storm_on_spark.api.hooks import BoltAckInfo, BoltExecuteInfo, BoltFailInfo, EmitInfo, SpoutAckInfo, SpoutFailInfo
from storm_on_spark.api.info import ComponentInfo, ErrorInfo, MetricInfo, TopologyInfo
from storm_on_spark.api.metrics import (
    AssignableMetric,
    CombinedMetric,
    CountMetric,
    ICombiner,
    IMetric,
    IReducer,
    MeanReducer,
    MultiCountMetric,
    MultiReducedMetric,
    ReducedMetric,
)
from storm_on_spark.api.state import BaseStatefulBolt, IStatefulBolt, KeyValueState
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId, StreamSpec
from storm_on_spark.api.streams.values import Values
from storm_on_spark.api.topology import ComponentKind, ComponentSpec, Topology
from storm_on_spark.api.tuple import Tuple

__all__ = [
    "DEFAULT_STREAM",
    "AllGrouping",
    "AlreadyAliveError",
    "AssignableMetric",
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
    "CombinedMetric",
    "ComponentConfigurationDeclarer",
    "ComponentError",
    "ComponentInfo",
    "ComponentKind",
    "ComponentSpec",
    "Config",
    "ConfigError",
    "CountMetric",
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
    "ICombiner",
    "IMetric",
    "IReducer",
    "IRichBolt",
    "IRichSpout",
    "IStatefulBolt",
    "InvalidTopologyError",
    "KeyValueState",
    "LocalOrShuffleGrouping",
    "MeanReducer",
    "MetricInfo",
    "MultiCountMetric",
    "MultiReducedMetric",
    "NoneGrouping",
    "NotAliveError",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "PartialKeyGrouping",
    "ReducedMetric",
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
]
