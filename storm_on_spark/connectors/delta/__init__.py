"""Delta tables: a bolt that writes them, a spout that reads them, and a bolt that looks values up in them."""

from __future__ import annotations

from storm_on_spark.connectors.delta.bolt import DeltaBolt, DeltaBoltError
from storm_on_spark.connectors.delta.enrich import EnrichBolt
from storm_on_spark.connectors.delta.spout import DeltaSpout

__all__ = ["DeltaBolt", "DeltaBoltError", "DeltaSpout", "EnrichBolt"]
