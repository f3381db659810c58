"""Streams by description: text becomes definitions of streams, and these become topologies."""

from __future__ import annotations

from storm_on_spark.xd.fused import load_file

__all__ = ["load_file"]
