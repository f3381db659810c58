"""The logical graph: what the passes of the compiler hand to each other.

It starts as the topology's components and subscriptions and gains, pass by pass, tasks, deliveries, verdicts
on statelessness and stages, until `storm_on_spark.plan.compile` reads a physical plan off it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.model import Delivery, Edge, Stage


@dataclass(frozen=True)
class Verdict:
    """Whether a component is stateless, and why."""

    stateless: bool
    reason: str


@dataclass(frozen=True)
class LogicalGraph:
    """A topology on its way to a plan; immutable, every pass returns a new one."""

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

    @classmethod
    def of(cls, topology: Topology, conf: Mapping[str, object]) -> LogicalGraph:
        """Returns the graph that the first pass gets.

        Edges are sorted by target, source and stream, so that the order in which the user's code declares
        components has no influence on the plan: a plan outlives the process, in the checkpoint.
        """
        edges = [
            Edge(source.component, source.stream, target, grouping, Delivery.EXCHANGE)
            for target, spec in topology.components.items()
            for source, grouping in spec.inputs
        ]
        edges.sort(key=lambda edge: (edge.target, edge.source, edge.stream))
        return cls(topology, MappingProxyType(dict(conf)), tuple(edges))

    @property
    def forward_edges(self) -> tuple[Edge, ...]:
        """The edges whose tuples arrive in the same micro-batch; they form no cycle."""
        return tuple(edge for edge in self.edges if edge.delivery is not Delivery.CARRIED)

    def inputs(self) -> dict[str, list[Edge]]:
        """Returns the edges that end in each component."""
        found: dict[str, list[Edge]] = {component: [] for component in self.topology.components}
        for edge in self.edges:
            found[edge.target].append(edge)
        return found


Pass: TypeAlias = Callable[[LogicalGraph], LogicalGraph]
"""One step of the compiler."""
