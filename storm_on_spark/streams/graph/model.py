"""The graph: sources, operations and sinks, and the links between them.

A front end such as the Streams API makes nodes from its users' calls. Passes turn a graph into another, `fuse` decides
which operations share a bolt, and `streams/lowering` makes the topology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import FieldsGrouping

if TYPE_CHECKING:
    from storm_on_spark.api.streams.grouping import Grouping
    from storm_on_spark.streams.operations.processor import Processor
    from storm_on_spark.windowing.definition import Duration, Extent

W = TypeVar("W", bound="Window")


BY_KEY: Final = FieldsGrouping(Fields("key"))
"""Sends all pairs with the same key to one task."""


@dataclass(frozen=True)
class Port:
    """One output of a node."""

    node: int
    output: int = 0
    """Operations such as `branch` have several."""


@dataclass(frozen=True)
class Window:
    """Length, slide and time of a window; `SlidingWindows` and `TumblingWindows` make it."""

    length: Extent
    slide: Extent
    timestamp_field: str | None = None
    """The field of the spouts' tuples with the time of the event, in ms; None for the time of arrival."""
    lag: Duration | None = None
    late_stream: str | None = None
    watermark_interval: Duration | None = None
    idle_timeout: Duration | None = None

    def with_timestamp_field(self: W, field: str) -> W:
        """Returns windows by a field of the spouts' tuples with their time: an integer, in ms.

        The field travels with the values, up to the window.
        """
        return replace(self, timestamp_field=field)

    def with_lag(self: W, lag: Duration) -> W:
        """Returns windows for timestamps that may be out of order by this much."""
        return replace(self, lag=lag)

    def with_late_tuple_stream(self: W, stream: str) -> W:
        """Returns windows that emit late tuples on a stream of their bolt; by default these are logged."""
        return replace(self, late_stream=stream)

    def with_watermark_interval(self: W, interval: Duration) -> W:
        """Returns windows whose watermark advances at this interval; by default each second."""
        return replace(self, watermark_interval=interval)

    def with_idle_timeout(self: W, timeout: Duration) -> W:
        """Returns windows whose watermark no longer waits for an input that has been silent for this long."""
        return replace(self, idle_timeout=timeout)


@dataclass(frozen=True)
class Link:
    """The way of values from a port to a node."""

    port: Port
    grouping: Grouping | None = None
    """Which tasks receive them; None for any, so both ends may share a bolt."""
    window: Window | None = None
    """The window that gathers them on arrival; then both ends are in different bolts."""


@dataclass(frozen=True)
class Source:
    """A spout: its tuples are the values."""

    id: int
    component: Any
    parallelism: int
    where: str
    """File and line of the user's call."""
    name: str | None = None
    """The user's name for it."""

    @property
    def links(self) -> tuple[Link, ...]:
        """None: a spout has no input."""
        return ()


@dataclass(frozen=True)
class Operation:
    """An operation on the values of one or more links."""

    id: int
    processor: Processor
    links: tuple[Link, ...]
    """One for each input of the processor, in order."""
    parallelism: int
    pairs: bool
    """Whether its results are pairs of key and value."""
    where: str
    tuples: bool = False
    """Whether its results are tuples with named fields, like those of a spout."""
    fields: tuple[str, ...] | None = None
    """Names of the values of its results, if these are rows; None if they are values or pairs."""

    @property
    def label(self) -> str:
        """Name and place, for messages."""
        return f"{self.processor.name} ({self.where})"


@dataclass(frozen=True)
class Sink:
    """A user's bolt; its tuples may be the values of further operations."""

    id: int
    component: Any
    links: tuple[Link, ...]
    parallelism: int
    where: str
    name: str | None = None


Node: TypeAlias = Source | Operation | Sink


@dataclass(frozen=True)
class Graph:
    """Nodes by id. Inputs of a node have lower ids, so the order of ids is a topological one.

    Example:
        >>> spout, bolt = Source(0, "spout", 1, "words.py:3"), Sink(1, "bolt", (Link(Port(0)),), 1, "words.py:4")
        >>> graph = Graph({0: spout, 1: bolt})
        >>> [node.id for node in graph.consumers(0)]
        [1]
    """

    nodes: Mapping[int, Node]
    _consumers: Mapping[int, tuple[int, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", MappingProxyType(dict(sorted(self.nodes.items()))))
        found: dict[int, list[int]] = {number: [] for number in self.nodes}
        for node in self.nodes.values():
            for producer in dict.fromkeys(link.port.node for link in node.links):
                found[producer].append(node.id)
        object.__setattr__(self, "_consumers", {number: tuple(ids) for number, ids in found.items()})

    def operations(self) -> Iterator[Operation]:
        """Yields the operations, each one after those that feed it."""
        return (node for node in self.nodes.values() if isinstance(node, Operation))

    def consumers(self, number: int) -> Iterator[Operation | Sink]:
        """Yields the nodes that receive values from a node."""
        for consumer in self._consumers[number]:
            node = self.nodes[consumer]
            assert not isinstance(node, Source)
            yield node

    def with_nodes(self, *changed: Node) -> Graph:
        """Returns a graph with some nodes replaced."""
        return Graph({**self.nodes, **{node.id: node for node in changed}})
