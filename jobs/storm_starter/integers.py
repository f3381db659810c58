"""Shared by storm-starter's windowing examples: random integers, and a bolt that prints."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)

COUNT = "integers.count"
"""Configuration key: how many integers there are; without end if it is not set."""

PAUSE = "integers.pause.secs"
"""Configuration key: the time between two of them."""


class RandomIntegerSpout(BaseRichSpout):
    """Emits random integers, each with its creation time minus a day, in ms, and a growing id.

    If their number is limited, the times are 100 ms apart and the same in each run.
    """

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self._count = conf.get(COUNT)
        self._pause = conf.get(PAUSE, 0.1)
        self._due = 0.0
        self._random = random.Random(context.this_task_id)
        self._next = 0

    def next_tuple(self) -> None:
        if self.exhausted() or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._pause
        self._next += 1
        now = 1_700_000_000_000 + 100 * self._next if self._count else int(1000 * (time.time() - 24 * 60 * 60))
        self._collector.emit([self._random.randrange(1000), now, self._next], message_id=self._next)

    def exhausted(self) -> bool:
        return self._count is not None and self._next >= self._count

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("value", "ts", "msgid"))


class PrinterBolt(BaseBasicBolt):
    """Prints its input."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print(*tup)
