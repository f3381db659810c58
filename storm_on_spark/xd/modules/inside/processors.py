"""Processors: bolts in the middle of a stream."""

from __future__ import annotations

import json
from typing import Any, Final

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.expressions import Expression
from storm_on_spark.xd.expressions.evaluating import as_text
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.message import FIELDS
from storm_on_spark.xd.modules.saved_attributes import Kept


class _Processor(BaseBasicBolt):
    stateless = True

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))


class Filter(_Processor):
    """Passes on the messages for which an expression is true."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Tests a message."""
        if self.expression.test(tup["payload"], tup["headers"]):
            collector.emit([tup["payload"], tup["headers"]])


class Bridge(_Processor):
    """Passes on all messages, from one channel to another."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Passes a message on."""
        collector.emit([tup["payload"], tup["headers"]])


class Transform(_Processor):
    """Replaces the payload with the value of an expression."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Transforms a message."""
        collector.emit([self.expression.value(tup["payload"], tup["headers"]), tup["headers"]])


class Splitter(_Processor):
    """Makes a message of each item of a list; any other value becomes one message."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Splits a message."""
        value = self.expression.value(tup["payload"], tup["headers"])
        for item in value if isinstance(value, list) else [value]:
            collector.emit([item, tup["headers"]])


class JsonToTuple(_Processor):
    """Parses the payload, a JSON object, so that expressions can read its properties."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Parses a message.

        Raises:
            ValueError: the payload is not a JSON object.
        """
        collector.emit([_object(tup["payload"]), tup["headers"]])


class Aggregator(_Processor):
    """Collects payloads, and emits a list of them once there are enough.

    Collected payloads are saved with the micro-batch, so messages are acked when they are collected.
    """

    stateless = False

    def __init__(self, count: int, correlation: Expression) -> None:
        self.count = count
        self.correlation = correlation
        self._groups: dict[str, list[Any]] = {}

    @property
    def state_holder(self) -> Kept:
        """The attributes that are saved."""
        return Kept(self)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Collects a message."""
        key = as_text(self.correlation.value(tup["payload"], tup["headers"]))
        group = self._groups.setdefault(key, [])
        group.append(tup["payload"])
        # There may be more if the count is smaller since a restart.
        if len(group) >= self.count:
            del self._groups[key]
            collector.emit([group, tup["headers"]])


def _object(payload: Any) -> dict[str, Any]:
    message = f"json-to-tuple expects a JSON object, got {payload!r:.100}"
    if not isinstance(payload, str | bytes):
        raise ValueError(message)
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{message}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(message)
    return found


PROCESSORS: Final = (
    ModuleDeclaration(
        "processor",
        "aggregator",
        "Makes one message, a list, of several payloads; its headers are those of the last.",
        Aggregator,
        (
            Option("count", "integer", "50", "How many payloads there are in a list.", minimum=1),
            Option("correlation", "expression", "'all'", "Payloads for which this is equal are put together."),
        ),
    ),
    ModuleDeclaration("processor", "bridge", "Passes all messages on: `queue:a > topic:b` is short for one.", Bridge),
    ModuleDeclaration(
        "processor",
        "filter",
        "Passes on the messages for which an expression is true.",
        Filter,
        (Option("expression", "expression", "true", "True for the messages to pass on."),),
    ),
    ModuleDeclaration("processor", "json-to-tuple", "Parses a payload that is a JSON object.", JsonToTuple),
    ModuleDeclaration(
        "processor",
        "splitter",
        "Makes a message of each item of a list.",
        Splitter,
        (Option("expression", "expression", "payload", "The list, such as payload.split(' ')."),),
    ),
    ModuleDeclaration(
        "processor",
        "transform",
        "Replaces the payload with the value of an expression.",
        Transform,
        (Option("expression", "expression", "payload", "The new payload."),),
    ),
)
