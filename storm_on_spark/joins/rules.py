"""Joining the tuples of several streams: pure, over the tuples of a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.text.wording import quoted
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.joins.selectors import FieldSelector, Key

Record = tuple[Tuple, ...]
"""Tuples that belong together, at most one of each stream."""


class Selector(Enum):
    """How a join tells its streams apart; Storm's `JoinBolt.Selector`."""

    STREAM = "stream"
    """By the id of the stream."""
    SOURCE = "source"
    """By the component that emits it."""

    def of(self, tup: Tuple) -> str:
        """Returns the name of a tuple's stream."""
        return tup.source_stream if self is Selector.STREAM else tup.source_component


class Kind(Enum):
    """The kind of a join: what happens to tuples without a partner."""

    INNER = "join"
    LEFT = "left join"
    RIGHT = "right join"
    FULL = "full join"

    @property
    def keeps_left(self) -> bool:
        """Whether records of the streams before stay."""
        return self in (Kind.LEFT, Kind.FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether tuples of the new stream stay."""
        return self in (Kind.RIGHT, Kind.FULL)


@dataclass(frozen=True)
class Step:
    """A stream, and how it is joined with those before."""

    stream: str
    key: Key
    prior: str = ""
    """The stream to join with; empty for the first."""
    kind: Kind = Kind.INNER


@dataclass(frozen=True)
class JoinPlan:
    """The streams of a join, in order.

    The rules are Storm's. The key of an earlier stream is the one on which that stream itself is joined. A tuple whose
    key is missing or None is in no result, not even in that of an outer join.
    """

    selector: Selector
    steps: tuple[Step, ...]

    def streams(self) -> list[str]:
        """Returns the names of the streams."""
        return [step.stream for step in self.steps]

    def join(self, tuples: Iterable[Tuple]) -> list[Record]:
        """Returns the joined records.

        Raises:
            TupleError: a tuple is of none of the streams, or its key can't be one.
        """
        rows: dict[str, list[Tuple]] = {step.stream: [] for step in self.steps}
        for tup in tuples:
            name = self.selector.of(tup)
            if name not in rows:
                raise TupleError(
                    f'a tuple of {self.selector.value} "{name}" came, which is not part of the join; '
                    f"there are: {quoted(rows)}"
                )
            rows[name].append(tup)
        first, *others = self.steps
        records: list[Record] = [(tup,) for tup in rows[first.stream]]
        keys = {step.stream: step.key for step in self.steps}
        for step in others:
            records = self._joined(records, rows[step.stream], keys[step.prior], step)
        return records

    def _joined(self, records: list[Record], tuples: list[Tuple], prior: Key, step: Step) -> list[Record]:
        build: dict[Any, list[Tuple]] = {}
        for tup in tuples:
            key = step.key.value(lambda field, tup=tup: self.look_up(field, (tup,)))  # type: ignore[misc]
            if key is not None:
                build.setdefault(key, []).append(tup)
        joined: list[Record] = []
        matched = set()
        for record in records:
            key = prior.value(lambda field, record=record: self.look_up(field, record))  # type: ignore[misc]
            if key in build:
                matched.add(key)
                joined += [(*record, tup) for tup in build[key]]
            elif key is not None and step.kind.keeps_left:
                joined.append(record)
        if step.kind.keeps_right:
            joined += [(tup,) for key, found in build.items() if key not in matched for tup in found]
        return joined

    def look_up(self, field: FieldSelector, record: Record) -> Any:
        """Returns the first value of a field in a record that is not None."""
        for tup in record:
            value = field.look_up(tup, self.selector.of(tup))
            if value is not None:
                return value
        return None

    def project(self, record: Record, fields: Iterable[FieldSelector]) -> list[Any]:
        """Returns the values of some fields of a record; None where there is none."""
        return [self.look_up(field, record) for field in fields]


def parse_fields(text: str) -> tuple[FieldSelector, ...]:
    """Returns the fields that a text separated by commas names.

    Example:
        >>> [field.name for field in parse_fields("name, users:city")]
        ['name', 'users:city']
    """
    return tuple(FieldSelector.parse(part) for part in text.split(","))
