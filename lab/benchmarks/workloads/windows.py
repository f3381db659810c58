"""Counts by key in tumbling windows of ten seconds; event number n is of millisecond n and of key n modulo the keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lab.benchmarks.cases import WINDOW_KEYS
from lab.benchmarks.workloads.feed import Feed, SentenceBatches
from storm_on_spark import BaseWindowedBolt, Duration, Fields, OutputFieldsDeclarer, Topology, TopologyBuilder
from storm_on_spark.windowing import BatchWindowedBolt, CountOf


class Events(Feed):
    """Emits events."""

    def send(self, number: int) -> None:
        self.collector.emit([number % WINDOW_KEYS, number], number)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "time"))


class EventBatches(SentenceBatches):
    """Emits the same events as record batches."""

    def batch(self, first: int, count: int) -> pa.RecordBatch:
        numbers = np.arange(first, first + count)
        return pa.RecordBatch.from_arrays([pa.array(numbers % WINDOW_KEYS), pa.array(numbers)], ["key", "time"])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "time"))


class CountTuples(BaseWindowedBolt):
    """Counts the tuples of a window."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: Any) -> None:
        for key, count in Counter(tup["key"] for tup in window).items():
            self.collector.emit([key, count])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "count"))


class CountResults(CountTuples):
    """Emits the counts of a window."""

    def execute(self, window: Any) -> None:
        for key, results in window:
            self.collector.emit([key, results["count"]])


class CountColumns(BatchWindowedBolt):
    """Emits the counts of a window as a record batch."""

    def execute_window(self, window: Any, collector: Any) -> None:
        collector.emit(window.table)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "count"))


def counted(count: type, *, aggregate: bool) -> Any:
    """Returns a bolt with its windows, with an aggregation or without."""
    bolt = count().with_tumbling_window(Duration.seconds(10)).with_timestamp_field("time").with_lag(Duration(1))
    return bolt.with_aggregate(by="key", count=CountOf()) if aggregate else bolt


def windows(feed: type, count: type, *, aggregate: bool) -> Callable[..., Topology]:
    """Returns what builds the topology of this spout and bolt."""

    def build(control: str, source: str, options: Mapping[str, Any]) -> Topology:
        builder = TopologyBuilder()
        builder.set_spout("feed", feed(control, source))
        builder.set_bolt("count", counted(count, aggregate=aggregate), 2).fields_grouping("feed", Fields("key"))
        return builder.create_topology()

    return build
