"""Shared code of bolts that write to other systems: tables of tuples, refused rows, marks of plans."""

from __future__ import annotations

from storm_on_spark.connectors.sinks.columns import Columns
from storm_on_spark.connectors.sinks.dead_letters import RefusedRowError
from storm_on_spark.connectors.sinks.tables import TableBolt

__all__ = ["Columns", "RefusedRowError", "TableBolt"]
