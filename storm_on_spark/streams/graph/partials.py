"""Which windows keep partial results instead of values."""

from __future__ import annotations

from collections.abc import Iterator

from storm_on_spark.streams.graph.fuse import Group
from storm_on_spark.streams.graph.model import Graph, Link, Operation, Window
from storm_on_spark.windowing.definition import Duration


def partial_results(graph: Graph, group: Group) -> tuple[Operation, ...]:
    """Returns the operations that can keep the contents of a group's window as partial results.

    These are the first aggregations that the window's values reach. Before them there may be only operations that
    transform single values. Then values can be folded when they come, and the operations after the aggregations are
    executed at the end of the window, as always. A tumbling window has one partial result for each key. A sliding
    window has one for each slide, so its aggregations must be able to merge them.

    Returns: No operations if the window must keep its values.
    """
    window = group.window
    if window is None or not has_slides(window):
        return ()
    tumbling = window.length == window.slide
    found: dict[int, Operation] = {}
    waiting = [operation for operation, _, _ in group.links_in()]
    seen = set()
    while waiting:
        operation = waiting.pop()
        if operation.id in seen:
            continue
        seen.add(operation.id)
        processor = operation.processor
        if processor.gathers:
            if not (processor.folds if tumbling else processor.merges):
                return ()
            found[operation.id] = operation
            continue
        consumers = list(_links_from(graph, operation))
        if processor.acts or not consumers or not all(_is_call(group, *each) for each in consumers):
            return ()
        waiting += [consumer for consumer, _ in consumers if isinstance(consumer, Operation)]
    return tuple(found[number] for number in sorted(found))


def has_slides(window: Window) -> bool:
    """Returns whether length and slide have the same unit, which must be time if values bring their time."""
    if type(window.length) is not type(window.slide):
        return False
    return window.timestamp_field is None or isinstance(window.length, Duration)


def _links_from(graph: Graph, operation: Operation) -> Iterator[tuple[object, Link]]:
    for consumer in graph.consumers(operation.id):
        for link in consumer.links:
            if link.port.node == operation.id:
                yield consumer, link


def _is_call(group: Group, consumer: object, link: Link) -> bool:
    within = isinstance(consumer, Operation) and consumer.id in group.ids
    return within and link.grouping is None and link.window is None
