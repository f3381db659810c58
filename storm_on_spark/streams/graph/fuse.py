"""Pass: decides which operations share a bolt."""

from __future__ import annotations

from dataclasses import dataclass

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.streams.graph.model import Graph, Link, Operation, Window
from storm_on_spark.streams.operations.column_aggregates import ColumnAggregate
from storm_on_spark.streams.operations.columns import ColumnProcessor


@dataclass
class Group:
    """Operations that share a bolt; they forward values to each other by calls."""

    parallelism: int
    operations: list[Operation]

    @property
    def ids(self) -> set[int]:
        """The operations' ids."""
        return {operation.id for operation in self.operations}

    def links_in(self) -> list[tuple[Operation, int, Link]]:
        """Returns the links from outside: operation, number of its input, and link."""
        ids = self.ids
        return [
            (operation, number, link)
            for operation in self.operations
            for number, link in enumerate(operation.links)
            if link.port.node not in ids or link.grouping or link.window
        ]

    @property
    def window(self) -> Window | None:
        """The window of the values that come from outside.

        Raises:
            InvalidTopologyError: there are several windows.
        """
        found = {link.window: operation for operation, _, link in self.links_in() if link.window}
        if len(found) > 1:
            labels = " and ".join(operation.label for operation in found.values())
            raise InvalidTopologyError(
                f"{labels}: values of two different windows meet here; give both streams the same window, or gather "
                "each in a separate operation and repartition its results"
            )
        return next(iter(found), None)

    @property
    def stateful(self) -> bool:
        """Whether an operation keeps data from one value to the next."""
        return self.window is None and any(operation.processor.stateful for operation in self.operations)

    @property
    def on_columns(self) -> bool:
        """Whether the operations work on record batches."""
        return any(isinstance(operation.processor, ColumnProcessor) for operation in self.operations)

    @property
    def title(self) -> str:
        """The operations' names, in order."""
        return " → ".join(operation.processor.name for operation in self.operations)


def fuse(graph: Graph) -> list[Group]:
    """Returns the groups of operations, each one after the groups that feed it.

    An operation joins the group of all its inputs if any task will do and the parallelism is the same. Operations with
    the same inputs from outside, such as two filters of one spout's tuples, share a group too. A query of state joins
    the operation that has the state. Groups are merged if their results for the same window meet.
    """
    groups: list[Group] = []
    group_of: dict[int, Group] = {}
    by_links: dict[object, Group] = {}
    for operation in graph.operations():
        group = _group(operation, group_of, by_links)
        if group is None:
            group = Group(operation.parallelism, [])
            groups.append(group)
            if not isinstance(operation.processor, ColumnAggregate):
                by_links[_shared(operation)] = group
        group.operations.append(operation)
        group_of[operation.id] = group
    return [group for group in groups if group.operations]


def _group(operation: Operation, group_of: dict[int, Group], by_links: dict[object, Group]) -> Group | None:
    processor = operation.processor
    if processor.beside is not None and processor.beside != operation.id:
        return group_of[processor.beside]
    if all(_is_call(link, group_of) for link in operation.links):
        feeding = list({id(group_of[link.port.node]): group_of[link.port.node] for link in operation.links}.values())
        kinds = {(group.parallelism, group.on_columns) for group in feeding}
        if kinds == {(operation.parallelism, isinstance(processor, ColumnProcessor))}:
            window = feeding[0].window
            if len(feeding) == 1 or (window is not None and all(group.window == window for group in feeding)):
                return _merged(feeding, group_of)
    # Each bolt aggregates record batches in one way only.
    return None if isinstance(processor, ColumnAggregate) else by_links.get(_shared(operation))


def _shared(operation: Operation) -> object:
    """Returns the property that operations which don't feed each other must share to be in one bolt."""
    return operation.links, operation.parallelism, isinstance(operation.processor, ColumnProcessor)


def _merged(groups: list[Group], group_of: dict[int, Group]) -> Group:
    """Merges groups into the first one, so that results of several streams for the same window meet in one bolt."""
    first = groups[0]
    for other in groups[1:]:
        first.operations += other.operations
        group_of.update(dict.fromkeys(other.ids, first))
        other.operations.clear()
    first.operations.sort(key=lambda operation: operation.id)
    return first


def _is_call(link: Link, group_of: dict[int, Group]) -> bool:
    return link.grouping is None and link.window is None and link.port.node in group_of
