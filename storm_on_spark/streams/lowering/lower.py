"""From a graph to a topology: only here do operations become bolts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from storm_on_spark.api.building.builder import BoltDeclarer, TopologyBuilder
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.grouping import Grouping, ShuffleGrouping
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId
from storm_on_spark.api.text.wording import quoted
from storm_on_spark.api.topology import Topology
from storm_on_spark.streams.graph.columns import aggregate_columns
from storm_on_spark.streams.graph.fuse import Group, fuse
from storm_on_spark.streams.graph.model import BY_KEY, Graph, Link, Node, Operation, Port, Sink, Source
from storm_on_spark.streams.graph.partials import partial_results
from storm_on_spark.streams.graph.windows import delay_windows, keep_windows_in_one_task
from storm_on_spark.streams.lowering.bolts import OperationsBolt, StatefulOperationsBolt, WindowedOperationsBolt
from storm_on_spark.streams.lowering.columns import ColumnOperationsBolt, StatefulColumnsBolt, WindowedColumnsBolt
from storm_on_spark.streams.lowering.wiring import Entry, Program, Shape

PASSES: Final[tuple[Callable[[Graph], Graph], ...]] = (delay_windows, keep_windows_in_one_task, aggregate_columns)
"""Applied in this order, before `fuse`."""


def lower(graph: Graph) -> Topology:
    """Returns the topology that executes a graph.

    Spouts are named `spout1`, `spout2` and so on, bolts `bolt1` and so on, as in Storm; users may name their own.

    Raises:
        InvalidTopologyError: windows or names don't fit together.
    """
    graph = reduce(lambda given, apply: apply(given), PASSES, graph)
    return Lowering(graph, fuse(graph)).topology()


class Lowering:
    """Makes the topology of a graph with grouped operations. Front ends may override names and bolts."""

    def __init__(self, graph: Graph, groups: list[Group]) -> None:
        self._graph = graph
        self._groups = groups
        self._builder = TopologyBuilder()
        #: Component by node.
        self._names: dict[int, str] = {}
        self._timed = self._timestamp_fields()

    def topology(self) -> Topology:
        """Returns the topology."""
        for number, source in enumerate((n for n in self._graph.nodes.values() if isinstance(n, Source)), start=1):
            self._names[source.id] = source.name or f"spout{number}"
            self._builder.set_spout(self._names[source.id], source.component, source.parallelism)
        bolts: list[Group | Sink] = sorted([*self._groups, *self._sinks()], key=_first)
        for number, bolt in enumerate(bolts, start=1):
            if isinstance(bolt, Sink):
                self._names[bolt.id] = bolt.name or f"bolt{number}"
            else:
                self._names.update(dict.fromkeys(bolt.ids, self._name(bolt, number)))
        for bolt in bolts:
            if isinstance(bolt, Group):
                self._add_group(bolt)
            else:
                self._add_sink(bolt)
        topology = self._builder.create_topology()
        self._check_time(topology)
        return topology

    def _check_time(self, topology: Topology) -> None:
        """Checks that tuples have the field from which windows take their time."""
        for node in self._graph.nodes.values():
            field = None if isinstance(node, Operation) else self._timed.get(node.id)
            spec = topology[self._names[node.id]].streams.get(DEFAULT_STREAM)
            if field is not None and (spec is None or field not in spec.fields):
                raise InvalidTopologyError(
                    f'a window takes its time from the field "{field}", but the tuples of "{self._names[node.id]}" '
                    f"({node.where}) have {quoted(spec.fields if spec else [])}",
                    component=self._names[node.id],
                )

    def _name(self, group: Group, number: int) -> str:
        """Returns the component id of a group's bolt."""
        return f"bolt{number}"

    def _bolt(self, group: Group, program: Program) -> Any:
        """Returns the bolt that executes a group."""
        if group.window is not None:
            if group.on_columns:
                return WindowedColumnsBolt(program, f"{group.title}, in windows", group.window)
            partials = partial_results(self._graph, group)
            return WindowedOperationsBolt(program, f"{group.title}, in windows", group.window, partials)
        if group.on_columns:
            return (StatefulColumnsBolt if group.stateful else ColumnOperationsBolt)(program, group.title)
        if group.stateful:
            return StatefulOperationsBolt(program, group.title)
        return OperationsBolt(program, group.title)

    def _sinks(self) -> list[Sink]:
        return [node for node in self._graph.nodes.values() if isinstance(node, Sink)]

    def _add_sink(self, sink: Sink) -> None:
        declarer = self._builder.set_bolt(self._names[sink.id], sink.component, sink.parallelism)
        for link in sink.links:
            self._subscribe(declarer, link.port, link.grouping or ShuffleGrouping())

    def _add_group(self, group: Group) -> BoltDeclarer:
        links = group.links_in()
        entries = tuple(
            Entry(
                self._names[link.port.node],
                self._stream(link.port),
                self._shape(link.port.node),
                operation.id,
                number,
            )
            for operation, number, link in links
        )
        program = Program(
            tuple(group.operations),
            entries,
            {port: self._stream(port) for port in self._ports_out(group)},
            group.window is not None,
            self._timed.get(group.operations[0].id),
        )
        name = self._names[group.operations[0].id]
        declarer = self._builder.set_bolt(name, self._bolt(group, program), group.parallelism)
        groupings: dict[Port, Grouping] = {}
        for operation, _, link in links:
            grouping = _grouping(operation, link)
            if groupings.setdefault(link.port, grouping) != grouping:
                raise InvalidTopologyError(
                    f"{operation.label}: the same values come here by two groupings; put an operation such as map "
                    "before the repartition of one of them"
                )
        for port, grouping in groupings.items():
            self._subscribe(declarer, port, grouping)
        return declarer

    def _subscribe(self, declarer: BoltDeclarer, port: Port, grouping: Grouping) -> None:
        declarer.grouping(GlobalStreamId(self._names[port.node], self._stream(port)), grouping)

    def _ports_out(self, group: Group) -> list[Port]:
        """Returns the outputs of a group that other bolts get."""
        ids = group.ids
        return [
            Port(operation.id, output)
            for operation in group.operations
            for output in range(operation.processor.outputs)
            if any(
                link.port == Port(operation.id, output) and (consumer.id not in ids or link.grouping or link.window)
                for consumer in self._graph.consumers(operation.id)
                for link in consumer.links
            )
        ]

    def _stream(self, port: Port) -> str:
        node = self._graph.nodes[port.node]
        if not isinstance(node, Operation):
            return DEFAULT_STREAM
        return f"s{node.id}" if node.processor.outputs == 1 else f"s{node.id}-{port.output}"

    def _shape(self, number: int) -> Shape:
        node = self._graph.nodes[number]
        if not isinstance(node, Operation) or node.tuples:
            return Shape.TUPLE
        if node.fields is not None:
            return Shape.ROW
        return Shape.PAIR if node.pairs else Shape.VALUE

    def _timestamp_fields(self) -> dict[int, str]:
        """Returns, by operation, the field with the event time that windows after it need."""
        needed: dict[int, str] = {}
        for node in reversed(list(self._graph.nodes.values())):
            for link in node.links:
                field = link.window.timestamp_field if link.window else needed.get(node.id)
                before = needed.setdefault(link.port.node, field) if field else None
                if before != field and field:
                    raise InvalidTopologyError(
                        f'{_label(node)}: windows use the time fields "{before}" and "{field}" of the same values; '
                        "use one field in all windows"
                    )
        for group in self._groups:
            # All streams of a bolt have the same fields.
            fields = {needed[operation.id] for operation in group.operations if operation.id in needed}
            needed.update({operation.id: field for operation in group.operations for field in fields})
        return needed


def _grouping(operation: Operation, link: Link) -> Grouping:
    """Returns the grouping of a link between two bolts."""
    if link.grouping is not None:
        return link.grouping
    # Pairs that are already in their key's task get no grouping, in case both operations share a bolt.
    return BY_KEY if operation.processor.by_key and operation.parallelism > 1 else ShuffleGrouping()


def _label(node: Node) -> str:
    return node.label if isinstance(node, Operation) else f"to ({node.where})"


def _first(bolt: Group | Sink) -> int:
    return bolt.operations[0].id if isinstance(bolt, Group) else bolt.id
