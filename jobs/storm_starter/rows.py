"""Shared by storm-starter's examples of joins and streams: a spout of made-up rows, and a bolt that prints."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
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

COUNT = "rows.count"
"""Configuration key: how many rows each spout makes."""

PAUSE = "rows.pause.secs"
"""Configuration key: the time between two rows of a task."""

DEFAULTS = {COUNT: 200, PAUSE: 0.02}

NAMES = ("nathan", "mike", "jackson", "golda", "bertels")

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
)


class RowSpout(BaseRichSpout):
    """Emits rows that a function makes of their numbers, so they are the same in each run, and again after a failure.

    Args:
        fields: of a row.
        row: called with the row's number, from 0; returns its values.
        tracked: whether rows have message ids.
    """

    def __init__(self, fields: Sequence[str], row: Callable[[int], Sequence[Any]], *, tracked: bool = True) -> None:
        self._fields, self._row, self._tracked = tuple(fields), row, tracked

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self._count, self._pause = conf.get(COUNT, DEFAULTS[COUNT]), conf.get(PAUSE, DEFAULTS[PAUSE])
        self._step = len(context.component_tasks(context.this_component_id))
        self._due = 0.0
        self.next = context.this_task_index
        self.failed: list[int] = []

    def next_tuple(self) -> None:
        if self.failed:
            number = self.failed.pop()
        elif self.next < self._count and time.monotonic() >= self._due:
            number = self.next
            self.next += self._step
            self._due = time.monotonic() + self._pause
        else:
            return
        self._collector.emit(self._row(number), message_id=number if self._tracked else None)

    def fail(self, message_id: int) -> None:
        self.failed.append(message_id)

    def exhausted(self) -> bool:
        return self.next >= self._count and not self.failed

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(self._fields))


class PrinterBolt(BaseBasicBolt):
    """Prints the values of its input."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print(tuple(tup))


def word(number: int) -> tuple[str]:
    """Returns a random name; Storm's `TestWordSpout`."""
    return (random.Random(f"word {number}").choice(NAMES),)


def sentence(number: int) -> tuple[str]:
    """Returns a random sentence; Storm's `RandomSentenceSpout`."""
    return (random.Random(f"sentence {number}").choice(SENTENCES),)


def integer(number: int) -> tuple[int, int, int]:
    """Returns a random integer, a time in ms, and a growing id; Storm's `RandomIntegerSpout`."""
    return random.Random(f"integer {number}").randrange(1000), 1_700_000_000_000 + 100 * number, number
