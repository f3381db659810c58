"""The language of streams: one line of text becomes a `Stream`."""

from __future__ import annotations

from storm_on_spark.xd.dsl.errors import Code, DslError
from storm_on_spark.xd.dsl.model import Channel, Module, Stream, Tap
from storm_on_spark.xd.dsl.parsing import MAXIMUM_LENGTH, parse_stream

__all__ = ["MAXIMUM_LENGTH", "Channel", "Code", "DslError", "Module", "Stream", "Tap", "parse_stream"]
