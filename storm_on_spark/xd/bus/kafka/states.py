"""State and positions of instances, in the last record of each instance's partition."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from storm_on_spark.xd.bus.journal import Positions, Record
from storm_on_spark.xd.bus.kafka.clients import ANSWER_MS
from storm_on_spark.xd.bus.kafka.seals import Seals
from storm_on_spark.xd.bus.port import BusError

logger = logging.getLogger(__name__)

_FIRST_STEP: Final = 16
_STEP_FACTOR: Final = 16
_POLL_MS: Final = 200


@dataclass(frozen=True)
class Kept:
    """The saved state of an instance.

    Args:
        record: of its last step, without messages.
        base: where all instances of its deployment began.
        ids: topic -> id, of the topics of these positions.
    """

    record: Record
    base: Positions = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    def without(self, topics: Collection[str]) -> Kept:
        """Returns a copy without the positions in topics."""
        positions, base = _without(self.record.positions, topics), _without(self.base, topics)
        return replace(self, record=replace(self.record, positions=positions), base=base)


def begin(
    era: str, sequence: int, kept: Mapping[int, Kept], first: Callable[[], Positions]
) -> tuple[Positions, Positions]:
    """Returns where an instance begins to read, and where all instances of its deployment began.

    An instance continues where it stopped. If the number of instances has changed, messages belong to other instances,
    so all begin where the least advanced one was: nothing is lost, and a message may be read twice.

    Args:
        era: generation of the deployment, and number of instances.
        sequence: of the instance.
        kept: of all instances that ever ran.
        first: returns where a module begins on its first run.

    Example:
        >>> before = {1: Kept(Record(positions={"a": (5, 0)}, generation="1x2"), {"a": (1, 0)})}
        >>> begin("2x2", 1, before, dict), begin("2x3", 1, before, dict)
        (({'a': (5, 0)}, {'a': (1, 0)}), ({'a': (1, 0)}, {'a': (1, 0)}))
    """
    own = kept.get(sequence)
    if own is not None and own.record.generation == era:
        return own.record.positions, own.base
    earlier = [each for each in kept.values() if _numbers(each.record.generation) < _numbers(era)]
    before = max((each.record.generation for each in earlier), key=_numbers, default=None)
    base = next((each.base for each in kept.values() if each.record.generation == era), None)
    if base is None:
        base = first() if before is None else _least(kept, before)
    if own is not None and own.record.generation == before and _numbers(before)[1] == _numbers(era)[1]:
        return own.record.positions, base
    return base, base


def in_topics_that_are(kept: Mapping[int, Kept], ids: Mapping[str, str], name: str) -> dict[int, Kept]:
    """Returns the saved states, without positions in topics that were created again; these are read from the start.

    Args:
        kept: sequence -> the last saved state of an instance.
        ids: topic -> its current id.
        name: of the instance that begins, for the log.
    """
    found: dict[int, Kept] = {}
    again: set[str] = set()
    for sequence, each in kept.items():
        others = {topic for topic, was in each.ids.items() if ids.get(topic, was) != was}
        found[sequence] = each.without(others)
        again |= others
    for topic in sorted(again):
        logger.warning("%s: topic %s was deleted and created again: beginning with its first record", name, topic)
    return found


def _without(positions: Positions, topics: Collection[str]) -> Positions:
    return {name: at for name, at in positions.items() if name.rpartition("/")[0] not in topics}


def _least(kept: Mapping[int, Kept], era: str) -> Positions:
    of_era = {sequence: each for sequence, each in kept.items() if each.record.generation == era}
    base = next(iter(of_era.values())).base
    every = [
        of_era[sequence].record.positions if sequence in of_era else base for sequence in range(1, _numbers(era)[1] + 1)
    ]
    names = set.intersection(*map(set, every))
    return {name: min(each[name] for each in every) for name in names}


def _numbers(era: str) -> tuple[int, int]:
    generation, _, count = era.partition("x")
    return int(generation), int(count)


def last_kept(consumer: Any, seals: Seals, topic: str, partitions: int) -> dict[int, tuple[int, Kept]]:
    """Returns sequence -> offset and value of the last saved state of each instance of a module.

    Args:
        consumer: of no group; it loses its previous assignment.
        seals: of the cluster.
        topic: of the states.
        partitions: of the topic.

    Raises:
        BusError: Kafka does not answer, or a value is damaged.
    """
    from kafka.structs import TopicPartition

    wanted = [TopicPartition(topic, number) for number in range(partitions)]
    first = consumer.beginning_offsets(wanted, ANSWER_MS)
    behind = consumer.end_offsets(wanted, ANSWER_MS)
    found: dict[int, tuple[int, Kept]] = {}
    left = {each for each in wanted if first[each] < behind[each]}
    step = _FIRST_STEP
    while left:
        # The last records may be transaction markers.
        consumer.assign(list(left))
        begins = {each: max(first[each], behind[each] - step) for each in left}
        for each, offset in begins.items():
            consumer.seek(each, offset)
        for where, record in _until(consumer, {each: behind[each] for each in left}).items():
            found[where.partition + 1] = record.offset, seals.opened(topic, record.value)
        left = {each for each in left if each.partition + 1 not in found and begins[each] > first[each]}
        step *= _STEP_FACTOR
    return found


def _until(consumer: Any, ends: Mapping[Any, int]) -> dict[Any, Any]:
    """Reads up to the ends; returns the last record of each partition."""
    last: dict[Any, Any] = {}
    until = time.monotonic() + ANSWER_MS / 1_000
    while any(consumer.position(each) < end for each, end in ends.items()):
        for where, records in consumer.poll(_POLL_MS).items():
            last[where] = records[-1]
        if time.monotonic() > until:
            raise BusError(f"Kafka does not answer: no end of {', '.join(sorted(each.topic for each in ends))}")
    return last
