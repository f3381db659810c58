"""The names of the package streamparse."""

from __future__ import annotations

from storm_on_spark.streamparse.stand_in.pystorm.component import StormHandler, Tuple
from storm_on_spark.streamparse.stand_in.streamparse.components import (
    BatchingBolt,
    Bolt,
    JavaBolt,
    JavaSpout,
    ReliableSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    TicklessBatchingBolt,
)
from storm_on_spark.streamparse.stand_in.streamparse.streams import Grouping, Stream
from storm_on_spark.streamparse.stand_in.streamparse.topology import Topology

__version__ = "5.0.1"
"""The release of streamparse whose behaviour this is."""

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
]
