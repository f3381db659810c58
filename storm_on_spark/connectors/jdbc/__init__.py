"""Databases: a bolt that writes to their tables over DB-API connections."""

from __future__ import annotations

from storm_on_spark.connectors.jdbc.bolt import JdbcBolt

__all__ = ["JdbcBolt"]
