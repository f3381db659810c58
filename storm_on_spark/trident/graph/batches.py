"""Passes: streams whose batches meet share a coordinator, and bolts get their number of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.streams.graph.fuse import Group
from storm_on_spark.streams.graph.model import Graph, Operation, Port, Source
from storm_on_spark.trident.graph.groupings import IDENTITY


def coordinators(graph: Graph) -> dict[int, int]:
    """Returns the source whose coordinator each node's batches are of: the first of those that meet.

    Example:
        >>> first, second = Source(0, None, 1, ""), Source(1, None, 1, "")
        >>> coordinators(Graph({0: first, 1: second}))
        {0: 0, 1: 1}
    """
    found = {number: number for number in graph.nodes}

    def root(number: int) -> int:
        while found[number] != number:
            number = found[number]
        return number

    for node in graph.nodes.values():
        for link in node.links:
            first, second = sorted((root(node.id), root(link.port.node)))
            found[second] = first
    return {number: root(number) for number in graph.nodes}


def share_coordinators(graph: Graph, of: Mapping[int, int]) -> Graph:
    """Lets all that emits batches that meet be told by one source; the others are left out."""
    changed = []
    for node in graph.operations():
        links = tuple(
            replace(link, port=Port(of[node.id])) if isinstance(graph.nodes[link.port.node], Source) else link
            for link in node.links
        )
        changed.append(replace(node, links=links))
    kept = {
        number: node for number, node in graph.nodes.items() if not isinstance(node, Source) or of[number] == number
    }
    return Graph({**kept, **{node.id: node for node in changed}})


def with_parallelism(
    graph: Graph, groups: list[Group], hints: Mapping[int, int], limit: Mapping[int, int]
) -> tuple[Graph, list[Group]]:
    """Gives each group the largest number of tasks that a user asked for one of its operations, up to a limit.

    Groups between which tuples stay in the task with the same number get equally many.
    """
    wanted = [max((hints.get(number, 1) for number in group.ids), default=1) for group in groups]
    group_of = {number: at for at, group in enumerate(groups) for number in group.ids}
    pairs = [
        (at, group_of[link.port.node])
        for at, group in enumerate(groups)
        for _, _, link in group.links_in()
        if link.grouping == IDENTITY
    ]
    for _ in pairs:  # at most this many rounds take a number from one end of a chain to the other
        for first, second in pairs:
            wanted[first] = wanted[second] = max(wanted[first], wanted[second])
    limits = [min((limit[number] for number in group.ids if number in limit), default=None) for group in groups]
    for _ in pairs:
        for first, second in pairs:
            found = [known for known in (limits[first], limits[second]) if known is not None]
            limits[first] = limits[second] = min(found, default=None)
    changed: list[Operation] = []
    made = []
    for group, hint, most in zip(groups, wanted, limits, strict=True):
        tasks = hint if most is None else min(hint, most)
        operations = [replace(_operation(graph, number), parallelism=tasks) for number in sorted(group.ids)]
        changed += operations
        made.append(Group(tasks, operations))
    return graph.with_nodes(*changed), made


def _operation(graph: Graph, number: int) -> Operation:
    node = graph.nodes[number]
    assert isinstance(node, Operation)
    return node


def check_order(graph: Graph, groups: list[Group], of: Mapping[int, int]) -> None:
    """Checks that no bolt waits for the end of a batch in a bolt that waits for itself.

    Raises:
        InvalidTopologyError: a state is asked by what comes from its own bolt, in the same batch.
    """
    group_of = {operation.id: number for number, group in enumerate(groups) for operation in group.operations}
    edges: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for number, group in enumerate(groups):
        for operation, _, link in group.links_in():
            if link.port.node in group_of:
                edges.setdefault((of[operation.id], group_of[link.port.node]), set()).add((of[operation.id], number))
    done: set[tuple[int, int]] = set()

    def visit(at: tuple[int, int], path: tuple[tuple[int, int], ...]) -> None:
        if at in path:
            names = " and ".join(dict.fromkeys(groups[number].operations[0].label for _, number in path))
            raise InvalidTopologyError(
                f"{names}: a batch goes from a bolt with a state to another one and back; query the state before the "
                "stream is repartitioned, or in a stream of its own"
            )
        if at not in done:
            for other in edges.get(at, ()):
                visit(other, (*path, at))
            done.add(at)

    for at in list(edges):
        visit(at, ())
