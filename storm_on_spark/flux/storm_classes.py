"""Counterparts of Storm's classes that Flux files name: test components and a grouping."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.custom_grouping import CustomStreamGrouping
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.task.collector import BasicOutputCollector, OutputCollector, SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.logs import component_logger
from storm_on_spark.api.tuple import Tuple

WORDS: Final = ("nathan", "mike", "jackson", "golda", "bertels")
_PAUSE_SECS: Final = 0.1

_logger = component_logger(__name__)


class NGrouping(CustomStreamGrouping):
    """The first `n` tasks of the bolt receive every tuple.

    >>> grouping = NGrouping(2)
    >>> grouping.prepare(None, GlobalStreamId("words"), [7, 8, 9])
    >>> grouping.choose_tasks(1, ["a"])
    [7, 8]
    """

    def __init__(self, n: int) -> None:
        self._count = int(n)
        self._tasks: list[int] = []

    def prepare(self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]) -> None:
        """Takes the first tasks."""
        self._tasks = sorted(target_tasks)[: self._count]

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        """Returns them."""
        return self._tasks


class TestWordSpout(BaseRichSpout):
    """Emits one of five words, chosen at random, ten times per second, without end and without tracking."""

    __test__ = False

    def __init__(self, is_distributed: bool = True) -> None:
        self._is_distributed = is_distributed

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Keeps the collector."""
        self._collector = collector

    def next_tuple(self) -> None:
        """Emits a word."""
        time.sleep(_PAUSE_SECS)
        self._collector.emit([random.choice(WORDS)])

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Limits the spout to one task if it is not distributed."""
        return None if self._is_distributed else {"topology.max.task.parallelism": 1}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares `word`."""
        declarer.declare(Fields("word"))


class TestWordCounter(BaseBasicBolt):
    """Counts the first value of its tuples, and emits each with its count."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with no counts."""
        self._counts: dict[Any, int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Counts a word."""
        word = tup.values[0]
        count = self._counts.get(word, 0) + 1
        self._counts[word] = count
        collector.emit([word, count])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares `word` and `count`."""
        declarer.declare(Fields("word", "count"))


class TestGlobalCount(BaseRichBolt):
    """Emits the number of tuples it has received."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Begins with zero."""
        self._collector = collector
        self._count = 0

    def execute(self, tup: Tuple) -> None:
        """Counts a tuple."""
        self._count += 1
        self._collector.emit([self._count], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares `global-count`."""
        declarer.declare(Fields("global-count"))


class TestAggregatesCounter(BaseRichBolt):
    """Keeps the last count of each word, and emits their sum."""

    __test__ = False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Begins with no counts."""
        self._collector = collector
        self._counts: dict[Any, int] = {}

    def execute(self, tup: Tuple) -> None:
        """Adds up."""
        word, count = tup.values[:2]
        self._counts[word] = int(count)
        self._collector.emit([sum(self._counts.values())], anchors=tup)
        self._collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares `agg-global`."""
        declarer.declare(Fields("agg-global"))


class LogInfoBolt(BaseBasicBolt):
    """Logs every tuple, with level INFO."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Logs it."""
        _logger.info("%s", tup)
