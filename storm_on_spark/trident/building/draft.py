"""The graph while the user's calls add to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from storm_on_spark.api.errors import InvalidTopologyError, UnknownFieldError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.wording import quoted
from storm_on_spark.streams.building.draft import Draft
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.streams.graph.model import Link, Operation, Source
from storm_on_spark.streams.operations.processor import Processor

Names = Fields | str | Iterable[str]
"""Fields, a name, or names."""


class BatchDraft(Draft):
    """A graph of operations on rows."""

    def __init__(self) -> None:
        super().__init__()
        #: What users call operations, and how many tasks they ask for; by operation.
        self.called: dict[int, str] = {}
        self.hints: dict[int, int] = {}
        #: The sources whose batches are single requests.
        self.requests: set[int] = set()

    def copy(self) -> BatchDraft:
        """Returns a graph with the same nodes, to which more can be added."""
        made = BatchDraft()
        made._nodes.update(self._nodes)
        made.called, made.hints, made.requests = self.called, self.hints, self.requests
        return made

    def operation(self, processor: Processor, links: Sequence[Link], fields: tuple[str, ...], label: str = "") -> Link:
        """Adds an operation; `label` is what the user calls it."""
        if label:
            self.called[self.next_id] = label
        return self.add(Operation(self.next_id, processor, tuple(links), 1, False, caller(), fields=fields))

    def renamed(self, link: Link, fields: tuple[str, ...]) -> Link:
        """Gives the results of an operation other fields."""
        node = self.graph.nodes[link.port.node]
        assert isinstance(node, Operation)
        self.add(replace(node, fields=fields))
        return link

    def source(self) -> Link:
        """Adds what begins batches."""
        return self.add(Source(self.next_id, None, 1, caller()))


def names_of(given: Names | None) -> tuple[str, ...]:
    """Returns names of fields; none for None."""
    return () if given is None else tuple(Fields.of(given))


def positions(fields: Sequence[str], chosen: Sequence[str], what: str) -> tuple[int, ...]:
    """Returns the positions of fields.

    Raises:
        UnknownFieldError: there is no such field.
    """
    for name in chosen:
        if name not in fields:
            raise UnknownFieldError(f'{what} ({caller()}): no field "{name}"; there are: {quoted(fields)}')
    return tuple(fields.index(name) for name in chosen)


def with_new(fields: tuple[str, ...], new: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Returns the fields of rows to which values are added.

    Raises:
        InvalidTopologyError: a field is there already.
    """
    twice = [name for name in new if name in fields]
    if twice:
        raise InvalidTopologyError(
            f"{what} ({caller()}): the stream has a field {quoted(twice)} already; give the new one another name, or "
            "drop the old one with project"
        )
    return (*fields, *new)
