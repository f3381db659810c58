"""The compiler's pipeline: from a topology to a physical plan."""

from __future__ import annotations

from collections.abc import Mapping

from storm_on_spark.api.topology import Topology
from storm_on_spark.plan.acker import add_acker
from storm_on_spark.plan.back_edges import mark_back_edges
from storm_on_spark.plan.fuse import fuse
from storm_on_spark.plan.level import level
from storm_on_spark.plan.logical import LogicalGraph, Pass
from storm_on_spark.plan.model import Delivery, PhysicalPlan, PlannedComponent
from storm_on_spark.plan.statelessness import judge_statelessness
from storm_on_spark.plan.tasks import assign_tasks
from storm_on_spark.plan.validate import validate

PASSES: tuple[Pass, ...] = (
    validate,
    assign_tasks,
    mark_back_edges,
    judge_statelessness,
    fuse,
    level,
    add_acker,
)
"""What turns a topology into a plan, in this order."""


def compile_plan(topology: Topology, conf: Mapping[str, object] | None = None) -> PhysicalPlan:
    """Returns the physical plan of a topology; where its tasks are placed is left to `with_partitions`.

    The same topology and configuration give the same plan, in whatever order the components were declared.

    Args:
        topology: what `TopologyBuilder.create_topology` returns.
        conf: the topology's configuration, valid.

    Raises:
        InvalidTopologyError: the topology breaks one of Storm's rules; the message lists all that it breaks.

    Example:
        >>> from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder
        >>> class Words(BaseRichSpout):
        ...     def next_tuple(self): ...
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("word"))
        >>> class Show(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         print(tup["word"])
        >>> builder = TopologyBuilder()
        >>> words = builder.set_spout("words", Words())
        >>> show = builder.set_bolt("show", Show(), 2).fields_grouping("words", Fields("word"))
        >>> plan = compile_plan(builder.create_topology())
        >>> [(stage.kind.value, stage.components) for stage in plan.stages]
        [('source', ('words',)), ('stateless', ('show',)), ('acker', ())]
    """
    graph = LogicalGraph.of(topology, conf or {})
    for step in PASSES:
        graph = step(graph)
    return _physical(graph)


def _physical(graph: LogicalGraph) -> PhysicalPlan:
    stage_of = {component: stage.index for stage in graph.stages for component in stage.components}
    fused = {edge.target for edge in graph.edges if edge.delivery is Delivery.LOCAL}
    components = {
        component: PlannedComponent(
            id=component,
            kind=spec.kind,
            tasks=graph.tasks[component],
            executors=graph.executors[component],
            stage=stage_of[component],
            fused=component in fused,
            stateless=graph.verdicts[component].stateless,
            reason=graph.verdicts[component].reason,
        )
        for component, spec in sorted(graph.topology.components.items())
    }
    return PhysicalPlan(
        topology=graph.topology,
        conf=graph.conf,
        components=components,
        edges=graph.edges,
        stages=graph.stages,
        acker_tasks=graph.acker_tasks,
        partitions=None,
        placement={},
        keys={},
    )
