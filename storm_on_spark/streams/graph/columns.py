"""Pass: columns are aggregated as columns."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.streams.graph.model import Graph, Operation
from storm_on_spark.streams.graph.partials import has_slides
from storm_on_spark.streams.graph.windows import in_windows
from storm_on_spark.streams.operations.column_aggregates import ColumnAggregate, on_columns
from storm_on_spark.streams.operations.columns import ColumnProcessor
from storm_on_spark.streams.operations.running import RunningAggregate, running


def aggregate_columns(graph: Graph) -> Graph:
    """Turns aggregations of windows into aggregations of columns, if their values come from operations on columns.

    Later operations in the same window must not aggregate again, since record batches have no windows. Nothing may
    request late tuples, which columns only count.
    """
    windowed = in_windows(graph)
    for operation in list(graph.operations()):
        found = _on_columns(graph, operation, windowed)
        if found is not None and not (operation.id in windowed and _is_aggregated_again(graph, operation.id, windowed)):
            graph = graph.with_nodes(replace(operation, processor=found))
    return graph


def _on_columns(graph: Graph, operation: Operation, windowed: set[int]) -> ColumnAggregate | RunningAggregate | None:
    if len(operation.links) != 1:
        return None
    before = graph.nodes[operation.links[0].port.node]
    if not isinstance(before, Operation) or not isinstance(before.processor, ColumnProcessor):
        return None
    window = operation.links[0].window
    if window is None:
        return None if operation.id in windowed else running(operation.processor, before.processor.fields)
    if not has_slides(window) or window.late_stream is not None:
        return None
    return on_columns(operation.processor, before.processor.fields)


def _is_aggregated_again(graph: Graph, number: int, windowed: set[int]) -> bool:
    return any(
        isinstance(consumer, Operation)
        and consumer.id in windowed
        and all(link.window is None for link in consumer.links)
        and (consumer.processor.gathers or _is_aggregated_again(graph, consumer.id, windowed))
        for consumer in graph.consumers(number)
    )
