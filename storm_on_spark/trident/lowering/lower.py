"""From a graph of operations on batches to a topology: the lowering of streams, with batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from storm_on_spark.api.building.builder import BoltDeclarer
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.grouping import AllGrouping, DirectGrouping
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.topology import Topology
from storm_on_spark.streams.graph.fuse import Group, fuse
from storm_on_spark.streams.graph.model import Graph, Operation, Port, Source
from storm_on_spark.streams.lowering.lower import Lowering
from storm_on_spark.streams.lowering.wiring import Program
from storm_on_spark.trident.graph.batches import check_order, coordinators, share_coordinators, with_parallelism
from storm_on_spark.trident.lowering.bolt import BatchBolt, Part
from storm_on_spark.trident.operations.emitting import EmitBatch
from storm_on_spark.trident.operations.processors import waits_for_commit
from storm_on_spark.trident.spouts.coordinator import BATCH, COMMIT, SUCCESS, MasterBatchCoordinator
from storm_on_spark.trident.spouts.interfaces import ICommitterTridentSpout


def lower(graph: Graph, hints: Mapping[int, int], names: Mapping[int, str], requests: Collection[int]) -> Topology:
    """Returns the topology that executes a graph.

    Args:
        graph: of operations on rows.
        hints: the number of tasks that users asked for, by operation.
        names: what users call operations.
        requests: the sources whose batches are single requests.

    Raises:
        InvalidTopologyError: parts don't fit together.
    """
    of = coordinators(graph)
    for node in graph.nodes.values():
        meets = of[node.id]
        if isinstance(node, Source) and meets != node.id and not {meets, node.id}.isdisjoint(requests):
            raise InvalidTopologyError(
                f"{node.where}: requests can't be joined or merged with the batches of other spouts; let them query a "
                "state instead"
            )
    groups = fuse(graph)
    graph = share_coordinators(graph, of)
    check_order(graph, groups, of)
    graph, groups = with_parallelism(graph, groups, hints, _limits(graph))
    return _BatchLowering(graph, groups, of, names, requests).topology()


class _BatchLowering(Lowering):
    def __init__(
        self,
        graph: Graph,
        groups: list[Group],
        of: Mapping[int, int],
        names: Mapping[int, str],
        requests: Collection[int],
    ) -> None:
        #: The source of each node's batches.
        self._of = of
        self._called = names
        sources = [node for node in graph.nodes.values() if isinstance(node, Source)]
        #: Number of the coordinator, by source.
        self._numbers = {source.id: number for number, source in enumerate(sources)}
        #: Whether something takes part in commits, by source.
        self._commits = {source.id: self._any(graph, source.id) for source in sources}
        made = [self._coordinator(graph, source, requests) for source in sources]
        super().__init__(graph.with_nodes(*made), groups)

    def _any(self, graph: Graph, source: int) -> bool:
        return any(
            waits_for_commit(node.processor) or _commits_spout(node)
            for node in graph.operations()
            if self._of[node.id] == source
        )

    def _coordinator(self, graph: Graph, source: Source, requests: Collection[int]) -> Source:
        emitting = [
            node.processor
            for node in graph.operations()
            if isinstance(node.processor, EmitBatch) and self._of[node.id] == source.id
        ]
        component = MasterBatchCoordinator(
            {emit.number: (emit.id, emit.spout) for emit in emitting}, self._commits[source.id], source.id in requests
        )
        return replace(source, component=component, name=f"$mastercoord-bg{self._numbers[source.id]}")

    def _name(self, group: Group, number: int) -> str:
        called = [self._called[operation.id] for operation in group.operations if operation.id in self._called]
        spouts = [op.processor.id for op in group.operations if isinstance(op.processor, EmitBatch)]
        parts = list(dict.fromkeys([*(f"spout-{name}" for name in spouts), *called]))
        return "-".join([f"b-{number - 1}", *parts])

    def _stream(self, port: Port) -> str:
        return BATCH if isinstance(self._graph.nodes[port.node], Source) else super()._stream(port)

    def _bolt(self, group: Group, program: Program) -> Any:
        parts = []
        for source in dict.fromkeys(self._of[operation.id] for operation in group.operations):
            operations = tuple(operation for operation in group.operations if self._of[operation.id] == source)
            ids = {operation.id for operation in operations}
            parts.append(
                Part(
                    replace(
                        program,
                        operations=operations,
                        entries=tuple(entry for entry in program.entries if entry.operation in ids),
                        outputs={port: stream for port, stream in program.outputs.items() if port.node in ids},
                        windowed=True,
                    ),
                    self._names[source],
                    tuple(self._before(group, source)),
                    tuple(self._behind(group, source)),
                    self._early(group, source),
                    self._reports(source),
                    any(isinstance(operation.processor, EmitBatch) for operation in operations),
                    any(waits_for_commit(operation.processor) for operation in operations),
                )
            )
        return BatchBolt(replace(program, windowed=True), parts, group.title)

    def _add_group(self, group: Group) -> BoltDeclarer:
        declarer = super()._add_group(group)
        for source in dict.fromkeys(self._of[operation.id] for operation in group.operations):
            operations = [operation for operation in group.operations if self._of[operation.id] == source]
            for name in self._before(group, source):
                declarer.grouping(GlobalStreamId(name, self._reports(source)), DirectGrouping())
            emits = any(isinstance(operation.processor, EmitBatch) for operation in operations)
            if any(waits_for_commit(operation.processor) or _commits_spout(operation) for operation in operations):
                declarer.grouping(GlobalStreamId(self._names[source], COMMIT), AllGrouping())
            if emits:
                declarer.grouping(GlobalStreamId(self._names[source], SUCCESS), AllGrouping())
        return declarer

    def _reports(self, source: int) -> str:
        return f"$coord-bg{self._numbers[source]}"

    def _before(self, group: Group, source: int) -> list[str]:
        """Returns the bolts whose tuples of a coordinator's batches a group gets."""
        return list(
            dict.fromkeys(
                self._names[link.port.node]
                for operation, _, link in group.links_in()
                if self._of[operation.id] == source and link.port.node != source
            )
        )

    def _early(self, group: Group, source: int) -> tuple[str, ...]:
        """Returns the bolts before a group that end a batch before its commit, if others do in its commit."""
        before = self._before(group, source)
        late = self._late(source)
        return tuple(name for name in before if name not in late) if late.intersection(before) else ()

    def _late(self, source: int) -> set[str]:
        """Returns the bolts that end a batch in its commit, as those that commit, and what comes after them."""
        late: set[str] = set()
        for group in self._groups:  # each after those that it gets rows from
            name = self._names[group.operations[0].id]
            commits = any(
                waits_for_commit(operation.processor) and self._of[operation.id] == source
                for operation in group.operations
            )
            if commits or late.intersection(self._before(group, source)):
                late.add(name)
        return late

    def _behind(self, group: Group, source: int) -> list[str]:
        """Returns the bolts that get a group's tuples of a coordinator's batches."""
        name = self._names[group.operations[0].id]
        return [self._names[other.operations[0].id] for other in self._groups if name in self._before(other, source)]


def _limits(graph: Graph) -> dict[int, int]:
    """Returns how many tasks spouts allow, by the operation that emits."""
    emitting = [(node.id, node.processor) for node in graph.operations() if isinstance(node.processor, EmitBatch)]
    return {number: emit.most_tasks for number, emit in emitting if emit.most_tasks is not None}


def _commits_spout(node: Operation) -> bool:
    return isinstance(node.processor, EmitBatch) and isinstance(node.processor.spout, ICommitterTridentSpout)
