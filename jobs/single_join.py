"""Storm's SingleJoinExample: two streams are joined by hand.

What to look for: a bolt that holds tuples over many micro-batches, unacked, in a plain dict. A joined row is
anchored to both tuples (multi-anchoring), so it belongs to two trees, and both spouts hear of it. A tuple whose
partner does not come in time is failed, and its spout may send it again. Held tuples survive a crash with the rest of
the bolt's state.

    storm-spark run jobs/single_join.py
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from exclamation import Show

from storm_on_spark import (
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    Config,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

PEOPLE = "single.join.people"
"""Configuration key: how many people there are."""

EXPIRE_SECS = "single.join.expire.secs"
"""Configuration key: how long a tuple waits for its partner; up to twice as long."""

conf = {PEOPLE: 10, EXPIRE_SECS: 10}


class PersonSpout(BaseRichSpout):
    """Emits one attribute of each person, in its own order.

    Args:
        field: the attribute's name.
        values: the attribute of person 0, 1 and so on.
        seed: of the order.
    """

    def __init__(self, field: str, values: Sequence[Any], seed: int) -> None:
        self._field = field
        self._rows = list(enumerate(values))
        random.Random(seed).shuffle(self._rows)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        self.position = 0
        self.failed: list[tuple[int, Any]] = []

    def next_tuple(self) -> None:
        if self.failed:
            row = self.failed.pop()
        elif self.position < len(self._rows):
            row = self._rows[self.position]
            self.position += 1
        else:
            return
        self._collector.emit(row, message_id=row)

    def fail(self, message_id: tuple[int, Any]) -> None:
        self.failed.append(message_id)

    def exhausted(self) -> bool:
        return self.position == len(self._rows) and not self.failed

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", self._field))


class SingleJoin(BaseTickTupleAwareRichBolt):
    """Joins the streams that it subscribes to, on one field that all of them have.

    Args:
        key: the field to join on.
        fields: what a joined row has: fields of any of the streams.
        expire_secs: the period of ticks; at the second tick after its arrival a tuple without partner is failed.
    """

    def __init__(self, key: str, fields: Sequence[str], expire_secs: int) -> None:
        self._key = key
        self._fields = tuple(fields)
        self._expire_secs = expire_secs

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self._collector = collector
        self.sources = frozenset((source.component, source.stream) for source in context.this_sources())
        #: Key -> stream -> the tuple that waits for the others: in `pending` since the last tick, in `old` before it.
        self.pending: dict[Any, dict[tuple[str, str], Tuple]] = {}
        self.old: dict[Any, dict[tuple[str, str], Tuple]] = {}

    def process(self, tup: Tuple) -> None:
        """Holds a tuple until one of each other stream has come with the same key."""
        key = tup[self._key]
        parts = self.old.pop(key, None) or self.pending.pop(key, {})
        source = (tup.source_component, tup.source_stream)
        again = parts.get(source)
        if again is not None:
            # A replay: the waiting tuple was timed out meanwhile, and its tree has ended.
            self._collector.fail(again)
        parts[source] = tup
        if parts.keys() == self.sources:
            self._emit(parts)
        else:
            self.pending[key] = parts

    def _emit(self, parts: Mapping[tuple[str, str], Tuple]) -> None:
        found = {name: part[name] for part in parts.values() for name in part.fields}
        self._collector.emit([found[name] for name in self._fields], anchors=parts.values())
        for part in parts.values():
            self._collector.ack(part)

    def on_tick_tuple(self, tup: Tuple) -> None:
        """Fails what has waited for too long."""
        for parts in self.old.values():
            for part in parts.values():
                self._collector.fail(part)
        self.old, self.pending = self.pending, {}

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self._expire_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(self._fields))


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    people = conf.get(PEOPLE, 10)
    builder = TopologyBuilder()
    builder.set_spout("genders", PersonSpout("gender", [("male", "female")[person % 2] for person in range(people)], 1))
    builder.set_spout("ages", PersonSpout("age", list(range(20, 20 + people)), 2))
    join = builder.set_bolt("join", SingleJoin("id", ("id", "gender", "age"), conf.get(EXPIRE_SECS, 10)), 2)
    join.fields_grouping("genders", Fields("id")).fields_grouping("ages", Fields("id"))
    builder.set_bolt("show", Show()).shuffle_grouping("join")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
