"""The graph while it is built by the user's calls."""

from __future__ import annotations

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.text import html
from storm_on_spark.api.text.graph import Edge, graph
from storm_on_spark.api.text.graph import Node as Box
from storm_on_spark.streams.graph.model import Graph, Link, Node, Operation, Port, Source
from storm_on_spark.streams.operations.columns import ColumnProcessor


class Draft:
    """A growing graph, shared by a builder and its streams."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}

    @property
    def graph(self) -> Graph:
        """The graph so far."""
        return Graph(self._nodes)

    @property
    def next_id(self) -> int:
        """The id for the next node."""
        return len(self._nodes)

    def add(self, node: Node) -> Link:
        """Adds a node, and returns the link to its values."""
        self._nodes[node.id] = node
        return Link(Port(node.id))

    def fields(self, number: int) -> tuple[str, ...]:
        """Returns the fields of the tuples that hold a node's values.

        Raises:
            InvalidTopologyError: a spout or bolt declares no stream `default`.
        """
        node = self._nodes[number]
        if isinstance(node, Operation):
            if isinstance(node.processor, ColumnProcessor):
                return node.processor.fields
            return ("key", "value") if node.pairs else ("value",)
        declarer = OutputFieldsDeclarer(type(node.component).__qualname__)
        node.component.declare_output_fields(declarer)
        if (spec := declarer.streams.get(DEFAULT_STREAM)) is None:
            raise InvalidTopologyError(f"{type(node.component).__qualname__} ({node.where}) declares no stream default")
        return tuple(spec.fields)

    def has_tuples(self, number: int) -> bool:
        """Returns whether a node's values are tuples."""
        node = self._nodes[number]
        return not isinstance(node, Operation) or node.tuples

    def picture(self) -> str:
        """Returns the graph as HTML."""
        boxes, edges = [], []
        for node in self._nodes.values():
            title = node.processor.name if isinstance(node, Operation) else type(node.component).__qualname__
            kind = "spout" if isinstance(node, Source) else "bolt"
            boxes.append(Box(str(node.id), title, f"{node.where} x{node.parallelism}", kind))
            edges += [Edge(str(link.port.node), str(node.id), _describe(link)) for link in node.links]
        title = html.line(f"Streams: {html.counted(len(boxes), 'operation')}", strong=True)
        return html.block(title, graph(boxes, edges))


def _describe(link: Link) -> str:
    parts = [link.grouping.describe()] if link.grouping else []
    return ", ".join([*parts, *(["window"] if link.window else [])])
