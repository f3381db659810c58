"""The reader in the task of a `KafkaSpout`, for real time: that of `PlainKafkaSpout`, from where Spark has stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from storm_on_spark.connectors.kafka.clients import Clients, now_ms
from storm_on_spark.connectors.kafka.config import KafkaSpoutConfig
from storm_on_spark.connectors.kafka.offsets import Offsets, Partition
from storm_on_spark.connectors.kafka.reading.plain import MessageId, PlainKafkaSpout
from storm_on_spark.connectors.sources.spark_source import KeptRows

_NUMBER: Final = re.compile("[0-9]{1,10}")
_MOST: Final = 2**63 - 1
_FILE: Final = b"\0v1\n"
"""What precedes the position in the file in which Spark's source keeps where it began."""


class TaskReader(PlainKafkaSpout):
    """Reads for a `KafkaSpout`.

    Args:
        config: of the spout.
        rows: what the spout saves; `read` has the offsets that are read on from.
        kept: returns the message ids of rows that Spark has read and that are not done.
    """

    def __init__(
        self, config: KafkaSpoutConfig, rows: KeptRows, kept: Callable[[], Iterable[tuple[str, int, int]]]
    ) -> None:
        super().__init__(config)
        self._rows, self._kept = rows, kept

    def open(self, *given: Any) -> None:
        """Prepares the reader, with its offsets."""
        super().open(*given)
        self.offsets = self._rows.read

    def committable(self) -> dict[Partition, int]:
        """Returns, by partition, the first offset that is not done, whoever has read it.

        There is none until the last micro-batch of Spark's is done: its rows are before those of the task.
        """
        return {} if self._rows.planned else first_undone(super().committable(), self._kept())

    def emit_failed(self, clients: Clients) -> None:
        """Emits failed records of its own again, and reads nothing new.

        Args:
            clients: of the spout.
        """
        if self._clients is None:
            self._use(clients)
        if self._tracks:
            self._emit_again(now_ms())


def taken_over(offsets: Offsets | None, position: str | None, topic_ids: Mapping[str, str]) -> Offsets:
    """Returns the offsets from which a task reads on where Spark's source has stopped.

    Args:
        offsets: of an earlier time in which it has read: some may not be done.
        position: of Spark's source; None if that has none.
        topic_ids: of the topics that Spark has read.

    Example:
        >>> offsets = taken_over(None, '{"lines":{"0":7}}', {})
        >>> offsets.partitions["lines", 0].position, offsets.looked_up
        (7, True)
        >>> taken_over(None, None, {}).looked_up
        False
    """
    offsets = offsets or Offsets()
    for partition, offset in positions_of(position).items():
        if not offsets.begin(partition, offset):
            # What is between was read by Spark, and what is not done of it is kept elsewhere.
            offsets.partitions[partition].pass_to(offset)
    offsets.looked_up |= position is not None
    offsets.topic_ids = {**topic_ids, **offsets.topic_ids}
    return offsets


def first_undone(ends: Mapping[Partition, int], undone: Iterable[MessageId]) -> dict[Partition, int]:
    """Returns, by partition, the first offset that is not done.

    Args:
        ends: by partition, up to where all else is done.
        undone: message ids.
    """
    found = dict(ends)
    for topic, partition, offset, *_ in undone:
        found[topic, partition] = min(offset, found.get((topic, partition), offset))
    return found


def positions_of(position: str | None) -> dict[Partition, int]:
    """Returns the offsets in a position of Spark's source.

    Raises:
        ValueError: it is none.

    Example:
        >>> positions_of('{"lines":{"1":5}}'), positions_of(None)
        ({('lines', 1): 5}, {})
        >>> positions_of('{"lines":{"1":-5}}')
        Traceback (most recent call last):
        ValueError: {"lines":{"1":-5}} names no offsets of Kafka's topics
    """
    if position is None:
        return {}
    found = {}
    try:
        for topic, parts in json.loads(position).items():
            for number, offset in parts.items():
                if not (_NUMBER.fullmatch(number) and type(offset) is int and 0 <= offset <= _MOST):
                    raise ValueError(number)
                found[topic, int(number)] = offset
    except (ValueError, AttributeError, RecursionError):
        raise ValueError(f"{position:.100} names no offsets of Kafka's topics") from None
    return found


def position_of(offsets: Mapping[Partition, int]) -> str:
    """Returns offsets as a position of Spark's source.

    Example:
        >>> position_of({("lines", 1): 5, ("lines", 0): 3})
        '{"lines":{"0":3,"1":5}}'
    """
    topics: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(number)] = offset
    return json.dumps(topics, separators=(",", ":"))


def moved(position: str | None, to: str) -> str:
    """Returns a position with the offsets of another one in place of its own.

    Example:
        >>> moved('{"a":{"0":1},"b":{"0":2}}', '{"a":{"0":9,"1":4}}')
        '{"a":{"0":9,"1":4},"b":{"0":2}}'
    """
    return position_of({**positions_of(position), **positions_of(to)})


def position_in(begun: bytes) -> str:
    """Returns the position in the file in which Spark's source keeps where it began.

    Raises:
        ValueError: it has another format.

    Example:
        >>> position_in(begun_at('{"a":{"0":1}}'))
        '{"a":{"0":1}}'
    """
    if not begun.startswith(_FILE):
        raise ValueError(f"it begins with {begun[:20]!r}, and not with {_FILE!r}")
    return begun.removeprefix(_FILE).decode()


def begun_at(position: str) -> bytes:
    """Returns the content of that file."""
    return _FILE + position.encode()
