"""Dead letters: messages that failed too often, and where they go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from storm_on_spark.api.component import BaseBasicBolt
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.task.collector import BasicOutputCollector
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.xd.modules.messages.message import FIELDS


@dataclass(frozen=True)
class DeadLetters:
    """What happens to messages that fail again and again.

    Args:
        folder: where they are written, one JSON object a line with `payload` and `headers`.
        attempts: how often a message may be tried.

    Raises:
        ValueError: `attempts` is less than 1.
    """

    folder: str
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"Expected at least 1 attempt, got {self.attempts}")


@runtime_checkable
class GivesUp(Protocol):
    """A source that can give up messages: it emits them on the stream `messages.DEAD_LETTERS`."""

    def give_up_after(self, attempts: int) -> None:
        """Sets how often a message may fail before it becomes a dead letter; called before the topology is made."""


@runtime_checkable
class RefusesRows(Protocol):
    """A sink whose target may refuse rows."""

    def refuse_to(self, folder: str) -> None:
        """Sets where refused rows go while the others are written; called before the topology is made."""


class Letter(BaseBasicBolt):
    """Makes a message of one that a source gave up; the place of a Kafka record becomes headers."""

    stateless = True

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Passes a dead letter on."""
        if tuple(tup.fields) == FIELDS:
            collector.emit([tup["payload"], tup["headers"]])
        else:
            collector.emit(_of_record(tup))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares payload and headers."""
        declarer.declare(Fields(*FIELDS))


def _of_record(record: Mapping[str, Any] | Tuple) -> list[Any]:
    headers = {f"kafka_{name}": record[name] for name in ("topic", "partition", "offset", "timestamp")}
    headers |= {"kafka_key": _text(record["key"]), "reason": record["reason"], "failures": record["failures"]}
    return [_text(record["value"]), headers]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
