"""The language of streams and jobs: one line of text becomes a `Stream` or a `Job`."""

from __future__ import annotations

from storm_on_spark.xd.dsl.errors import Code, DslError
from storm_on_spark.xd.dsl.jobs import ENDS, parse_job
from storm_on_spark.xd.dsl.model import Channel, Flow, Job, Module, Sequence, Split, Stream, Tap, Transition
from storm_on_spark.xd.dsl.parsing import MAXIMUM_LENGTH, parse_stream

__all__ = [
    "ENDS",
    "MAXIMUM_LENGTH",
    "Channel",
    "Code",
    "DslError",
    "Flow",
    "Job",
    "Module",
    "Sequence",
    "Split",
    "Stream",
    "Tap",
    "Transition",
    "parse_job",
    "parse_stream",
]
