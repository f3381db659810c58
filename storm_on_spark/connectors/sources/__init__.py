"""Spouts on Spark's own sources: their shared code, their retries, and the source `rate`."""

from __future__ import annotations

from storm_on_spark.connectors.sources.rate import RateSpout
from storm_on_spark.connectors.sources.retry import RetryBackoff
from storm_on_spark.connectors.sources.spark_source import NumberedSourceSpout, SourceError, SparkSourceSpout

__all__ = ["NumberedSourceSpout", "RateSpout", "RetryBackoff", "SourceError", "SparkSourceSpout"]
