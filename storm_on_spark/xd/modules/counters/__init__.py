"""Counters: sinks that count messages, and the files in which their values can be read."""

from __future__ import annotations

from storm_on_spark.xd.modules.counters.values import Counter, Kind, delete_counter, list_counters, read_counter

__all__ = ["Counter", "Kind", "delete_counter", "list_counters", "read_counter"]
