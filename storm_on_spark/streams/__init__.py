"""The Streams API: topologies as operations on streams, as in Storm's `org.apache.storm.streams`.

>>> from storm_on_spark.testing import ListSpout
>>> builder = StreamBuilder()
>>> lines = builder.new_stream(ListSpout(["to be", "or not to be"]), ValueMapper(0))
>>> lines.flat_map(str.split).map_to_pair(lambda word: (word, 1)).count_by_key().print()
>>> topology = builder.build()

Calls build a graph (`graph/`) of operations (`operations/`); `lowering/` turns it into a topology.
"""

from __future__ import annotations

from storm_on_spark.streams.building.builder import StreamBuilder
from storm_on_spark.streams.building.mappers import (
    PairValueMapper,
    TupleValueMapper,
    TupleValueMappers,
    ValueMapper,
    ValuesMapper,
)
from storm_on_spark.streams.building.stream import PairStream, Stream, StreamState
from storm_on_spark.streams.building.windows import SlidingWindows, TumblingWindows
from storm_on_spark.streams.operations.aggregators import CombinerAggregator, Distinct, LongSum, Max, Mean, Min, Sum
from storm_on_spark.windowing import Count, Duration

__all__ = [
    "CombinerAggregator",
    "Count",
    "Distinct",
    "Duration",
    "LongSum",
    "Max",
    "Mean",
    "Min",
    "PairStream",
    "PairValueMapper",
    "SlidingWindows",
    "Stream",
    "StreamBuilder",
    "StreamState",
    "Sum",
    "TumblingWindows",
    "TupleValueMapper",
    "TupleValueMappers",
    "ValueMapper",
    "ValuesMapper",
]
