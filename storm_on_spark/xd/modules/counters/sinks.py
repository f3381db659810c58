"""The sinks that count."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Final

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.expressions import Expression
from storm_on_spark.xd.modules.counters.values import Counter, Kind, checked_name, write_counter, writer_name
from storm_on_spark.xd.modules.declaration import HOME, STREAM_NAME, ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.message import written
from storm_on_spark.xd.modules.saved_attributes import Kept

OTHERS: Final = "(others)"
"""Stands for the field values beyond `maxValues`."""
_LONGEST_VALUE: Final = 1_000
_PARTS: Final = {"minute": "%Y-%m-%dT%H:%M", "hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_MOST_PARTS: Final = {"minute": 1_440, "hour": 744, "day": 1_100, "month": 240, "year": 100}
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999, counted from 1970."""


class _CounterSink(BaseRichBolt):
    """Counts messages.

    A micro-batch saves the counts with its state, and also writes them to a file for readers. Between this write and
    the commit, the file may be ahead of the saved counts. A crash at that moment takes the count back, and the same
    messages are counted again.
    """

    kind: ClassVar[Kind]
    stateless = False

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        # Workers have a different working directory from the program that makes the bolt.
        self.folder = str(Path(folder).absolute())
        self._changed = True

    @property
    def state_holder(self) -> Kept:
        """The attributes that are saved."""
        return Kept(self)

    @abstractmethod
    def count(self, payload: Any, headers: Mapping[str, Any]) -> None:
        """Counts a message."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Returns the values to write."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector, and the name of the file that this task writes."""
        self._collector = collector
        self.writer = writer_name(context.topology_name, context.this_component_id, context.this_task_index)

    def execute(self, tup: Tuple) -> None:
        """Counts a message; tick tuples are not counted."""
        if not tup.is_tick:
            self.count(tup["payload"], tup["headers"])
            self._changed = True
        self._collector.ack(tup)

    def finish_micro_batch(self) -> None:
        """Writes the values.

        Raises:
            OSError: they can't be written.
        """
        if self._changed:
            write_counter(self.folder, Counter(self.kind, self.name, self.values()), self.writer)
            self._changed = False


class CounterSink(_CounterSink):
    """Counts messages."""

    kind = "counter"

    def __init__(self, name: str, folder: str) -> None:
        super().__init__(name, folder)
        self._value = 0

    def count(self, payload: Any, headers: Mapping[str, Any]) -> None:
        """Counts a message."""
        self._value += 1

    def values(self) -> dict[str, Any]:
        """Returns the number of messages."""
        return {"value": self._value}


class FieldValueCounterSink(_CounterSink):
    """Counts messages by the value of an expression; a list counts for each of its items."""

    kind = "field-value-counter"

    def __init__(self, name: str, expression: Expression, max_values: int, folder: str) -> None:
        super().__init__(name, folder)
        self.expression = expression
        self.max_values = max_values
        self._counts: dict[str, int] = {}

    def count(self, payload: Any, headers: Mapping[str, Any]) -> None:
        """Counts the values of a message."""
        found = self.expression.value(payload, headers)
        for value in found if isinstance(found, list) else [found]:
            text = written(value)
            fits = text in self._counts or len(self._counts) < self.max_values
            key = text if fits and len(text) <= _LONGEST_VALUE else OTHERS
            self._counts[key] = self._counts.get(key, 0) + 1

    def values(self) -> dict[str, Any]:
        """Returns value -> number of messages."""
        return dict(self._counts)


class AggregateCounterSink(_CounterSink):
    """Counts messages by minute, hour, day, month and year, in UTC.

    Kept are the newest 1,440 minutes, 744 hours, 1,100 days, 240 months and 100 years that have messages.
    """

    kind = "aggregate-counter"

    def __init__(self, name: str, time: Expression, increment: Expression, folder: str) -> None:
        super().__init__(name, folder)
        self.time = time
        self.increment = increment
        self._counts: dict[str, dict[str, float]] = {part: {} for part in _PARTS}

    def now(self) -> float:
        """Returns the time, in seconds since 1970."""
        return time.time()

    def count(self, payload: Any, headers: Mapping[str, Any]) -> None:
        """Counts a message.

        Raises:
            ValueError: its time or increment is not a valid number.
        """
        when = self.time.value(payload, headers)
        seconds = self.now() if when is None else _number("time", when)
        if not 0 <= seconds <= _LATEST:
            raise ValueError(f"expected a time of 0 to {_LATEST} seconds since 1970, got {seconds}")
        increment = _number("increment", self.increment.value(payload, headers))
        moment = datetime.fromtimestamp(seconds, timezone.utc)
        for part, counts in self._counts.items():
            start = moment.strftime(_PARTS[part])
            counts[start] = counts.get(start, 0) + increment
            if len(counts) > _MOST_PARTS[part]:
                del counts[min(counts)]

    def values(self) -> dict[str, Any]:
        """Returns part -> start -> sum."""
        return {part: dict(sorted(counts.items())) for part, counts in self._counts.items()}


def _number(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number as {what}, got {value!r:.100}")
    return value


def _counter(name: str, dir: str) -> CounterSink:  # noqa: A002 # the option's name
    return CounterSink(name, dir)


def _field_value(name: str, expression: Expression, max_values: int, dir: str) -> FieldValueCounterSink:  # noqa: A002
    return FieldValueCounterSink(name, expression, max_values, dir)


def _aggregate(name: str, time: Expression, increment: Expression, dir: str) -> AggregateCounterSink:  # noqa: A002
    return AggregateCounterSink(name, time, increment, dir)


_NAME: Final = Option(
    "name",
    "text",
    STREAM_NAME,
    "The counter; by default the stream's name. Sinks of one name add up.",
    check=checked_name,
)
_FOLDER: Final = Option("dir", "text", f"{HOME}/counters", "The folder that its value is written to.")

SINKS: Final = (
    ModuleDeclaration(
        "sink",
        "aggregate-counter",
        "Counts messages by minute, hour, day, month and year.",
        _aggregate,
        (
            _NAME,
            Option("time", "expression", "null", "Seconds since 1970; null for the time of counting."),
            Option("increment", "expression", "1", "How much a message adds.", also=("incrementExpression",)),
            _FOLDER,
        ),
    ),
    ModuleDeclaration("sink", "counter", "Counts messages.", _counter, (_NAME, _FOLDER)),
    ModuleDeclaration(
        "sink",
        "field-value-counter",
        "Counts messages by a value; a list counts for each of its items.",
        _field_value,
        (
            _NAME,
            Option("expression", "expression", "payload", "The value, such as payload.user."),
            Option(
                "maxValues", "integer", "10000", f"Most different values; further ones count as {OTHERS}.", minimum=1
            ),
            _FOLDER,
        ),
    ),
)
