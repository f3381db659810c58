"""A topology amid a Spark pipeline: streaming DataFrames as spouts, and streams as streaming DataFrames."""

from __future__ import annotations

from storm_on_spark.connectors.pipeline.spout import DataFrameSpout
from storm_on_spark.connectors.pipeline.stream import StreamBolt, read_stream

__all__ = ["DataFrameSpout", "StreamBolt", "read_stream"]
