"""The passes that decide where each window gathers values.

A window gathers values in the bolt that a link leads to. That bolt knows when the window is complete. A bolt after it
does not, since several tasks may feed it. So a window must be aggregated in the bolt that gathers it.
"""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.api.streams.grouping import GlobalGrouping
from storm_on_spark.streams.graph.model import Graph, Node, Operation, Source, Window


def in_windows(graph: Graph) -> set[int]:
    """Returns the operations whose results belong to windows."""
    found: set[int] = set()
    for node in graph.operations():
        if not node.processor.ends_window and any(link.window or link.port.node in found for link in node.links):
            found.add(node.id)
    return found


def delay_windows(graph: Graph) -> Graph:
    """Moves windows to later links, so that values are gathered where they are aggregated.

    A window can be moved after operations on single values, since each value belongs to the same window before and
    after them. This is done if values change tasks, or meet another stream, between the window and the aggregation. A
    window of a number of values then counts the values that arrive there.
    """
    for number in list(graph.nodes):
        node = graph.nodes[number]
        if not isinstance(node, Operation) or node.processor.gathers or node.processor.ends_window:
            continue
        windows = {link.window for link in node.links if link.window}
        if len(windows) == 1 and _may_be_delayed(graph, number) and _is_aggregated_elsewhere(graph, number):
            (window,) = windows
            graph = graph.with_nodes(
                replace(node, links=tuple(replace(link, window=None) for link in node.links)),
                *(_with_window(consumer, number, window) for consumer in graph.consumers(number)),
            )
    return graph


def keep_windows_in_one_task(graph: Graph) -> Graph:
    """Lets one task aggregate a window whose results are aggregated again.

    Several tasks don't know of each other when a window is complete.
    """
    windowed = in_windows(graph)
    for node in graph.operations():
        if not node.processor.gathers:
            continue
        if any(link.grouping and link.port.node in windowed and not link.window for link in node.links):
            for member in _window_of(graph, node, windowed):
                graph = graph.with_nodes(_in_one_task(member, graph))
    return graph


def _may_be_delayed(graph: Graph, number: int) -> bool:
    """Whether everything that receives an operation's values can gather them itself."""
    return all(isinstance(node, Operation) and not node.processor.ends_window for node in graph.consumers(number))


def _is_aggregated_elsewhere(graph: Graph, number: int) -> bool:
    """Whether an operation's values reach an aggregation that is, or may be, in another bolt."""
    for consumer in graph.consumers(number):
        if not isinstance(consumer, Operation) or consumer.processor.ends_window:
            continue
        apart = len(consumer.links) > 1 or any(link.grouping for link in consumer.links)
        if consumer.processor.gathers:
            if apart:
                return True
        elif _is_aggregated_elsewhere(graph, consumer.id) or (apart and _is_aggregated(graph, consumer.id)):
            return True
    return False


def _is_aggregated(graph: Graph, number: int) -> bool:
    return any(
        isinstance(consumer, Operation)
        and not consumer.processor.ends_window
        and (consumer.processor.gathers or _is_aggregated(graph, consumer.id))
        for consumer in graph.consumers(number)
    )


def _with_window(node: Node, producer: int, window: Window) -> Node:
    assert not isinstance(node, Source)
    moved = (replace(link, window=window) if link.port.node == producer else link for link in node.links)
    return replace(node, links=tuple(moved))


def _window_of(graph: Graph, node: Operation, windowed: set[int]) -> list[Operation]:
    """Returns an operation and those before it, up to the links that have the window."""
    found, waiting = [], [node]
    while waiting:
        member = waiting.pop()
        found.append(member)
        for link in member.links:
            before = graph.nodes[link.port.node]
            if not link.window and link.port.node in windowed and isinstance(before, Operation):
                waiting.append(before)
    return found


def _in_one_task(member: Operation, graph: Graph) -> Operation:
    several = {link.port: graph.nodes[link.port.node].parallelism > 1 for link in member.links}
    links = tuple(
        replace(link, grouping=GlobalGrouping() if link.window and several[link.port] else None)
        for link in member.links
    )
    return replace(member, links=links, parallelism=1)
