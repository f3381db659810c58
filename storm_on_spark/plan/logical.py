"""The logical graph, which the passes of the compiler take and return.

It starts as the topology's components and subscriptions and gains, pass by pass, tasks, kinds of edges, verdicts
on statelessness and stages. Up to here it does not depend on where the topology runs. Then a number of partitions is
chosen, and it gains operators, places and keys, until `storm_on_spark.plan.compile` reads a physical plan off it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from storm_on_spark.api.sink import SinkBolt, WritesByNumber
from storm_on_spark.api.topology import ComponentKind, Topology
from storm_on_spark.plan.model import Edge, EdgeKind, Operator, PlannedComponent, Stage, only_spark
from storm_on_spark.plan.timers import timers_of


@dataclass(frozen=True)
class Verdict:
    """Whether a component is stateless, and why."""

    stateless: bool
    reason: str


@dataclass(frozen=True)
class LogicalGraph:
    """A topology that is being compiled; immutable, each pass returns a new one."""

    topology: Topology
    conf: Mapping[str, object]
    edges: tuple[Edge, ...]
    """One per subscription. All are exchanges until a pass decides otherwise."""
    tasks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The task ids of each component, ascending; set by `assign_tasks`."""
    executors: Mapping[str, int] = field(default_factory=dict)
    """How many executors each component has; set by `assign_tasks`."""
    acker_tasks: tuple[int, ...] = ()
    """The task ids of the acker; set by `assign_tasks`, empty where nothing is tracked."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Which components are stateless; set by `judge_statelessness`."""
    stages: tuple[Stage, ...] = ()
    """The stages in order; set by `level`, completed by `add_acker`."""
    partitions: int = 0
    """The number of Spark's partitions; set by `place`."""
    operators: tuple[Operator, ...] = ()
    """The operators in order; set by `add_operators`, changed by `join`."""
    placement: Mapping[int, int] = field(default_factory=dict)
    """The partition of each task; set by `place_tasks`."""
    keys: Mapping[int, int] = field(default_factory=dict)
    """The key that the rows of each task carry; set by `find_keys`."""

    @classmethod
    def of(cls, topology: Topology, conf: Mapping[str, object]) -> LogicalGraph:
        """Returns the graph that the first pass gets.

        Edges are sorted by target, source and stream, so that the order in which the user's code declares
        components has no influence on the plan: a plan outlives the process, in the checkpoint.
        """
        edges = [
            Edge(source.component, source.stream, target, grouping, EdgeKind.EXCHANGE)
            for target, spec in topology.components.items()
            for source, grouping in spec.inputs
        ]
        edges.sort(key=lambda edge: (edge.target, edge.source, edge.stream))
        return cls(topology, MappingProxyType(dict(conf)), tuple(edges))

    @cached_property
    def components(self) -> Mapping[str, PlannedComponent]:
        """The components as in a plan, by id; once there are stages."""
        stage_of = {component: stage.index for stage in self.stages for component in stage.components}
        fused = {edge.target for edge in self.edges if edge.kind is EdgeKind.LOCAL}
        return MappingProxyType(
            {
                component: PlannedComponent(
                    id=component,
                    kind=spec.kind,
                    tasks=self.tasks[component],
                    executors=self.executors[component],
                    stage=stage_of[component],
                    fused=component in fused,
                    stateless=self.verdicts[component].stateless,
                    reason=self.verdicts[component].reason,
                    turn_secs=getattr(spec.component, "turn_secs", None) if spec.kind is ComponentKind.BOLT else None,
                    timers=timers_of(spec, self.conf),
                    sink=isinstance(spec.component, SinkBolt),
                    by_number=isinstance(spec.component, WritesByNumber),
                    waits=getattr(spec.component, "waits_because", ""),
                    only_spark=only_spark(spec),
                )
                for component, spec in sorted(self.topology.components.items())
            }
        )

    @property
    def forward_edges(self) -> tuple[Edge, ...]:
        """The edges whose tuples arrive in the same micro-batch; they form no cycle."""
        return tuple(edge for edge in self.edges if edge.kind is not EdgeKind.CARRIED)

    def inputs(self) -> dict[str, list[Edge]]:
        """Returns the edges that end in each component."""
        found: dict[str, list[Edge]] = {component: [] for component in self.topology.components}
        for edge in self.edges:
            found[edge.target].append(edge)
        return found


Pass: TypeAlias = Callable[[LogicalGraph], LogicalGraph]
"""One step of the compiler."""
