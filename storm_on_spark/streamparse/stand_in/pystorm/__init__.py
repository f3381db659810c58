"""The names of the package pystorm."""

from __future__ import annotations

from storm_on_spark.streamparse.stand_in.pystorm.bolt import BatchingBolt, Bolt, TicklessBatchingBolt
from storm_on_spark.streamparse.stand_in.pystorm.component import Component, Tuple
from storm_on_spark.streamparse.stand_in.pystorm.spout import ReliableSpout, Spout

__version__ = "3.1.4"
"""The release of pystorm whose behaviour this is."""

__all__ = ["BatchingBolt", "Bolt", "Component", "ReliableSpout", "Spout", "TicklessBatchingBolt", "Tuple"]
