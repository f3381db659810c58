"""Pass: assigns components to stages."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import EdgeKind, Stage, StageKind
from storm_on_spark.plan.passes.graph import topological_order


def level(graph: LogicalGraph) -> LogicalGraph:
    """Turns the graph into a chain of stages, by longest path.

    The number of a component's stage is the greatest number of exchanges between a spout and it. So every
    exchange leads to a later stage, no stage is empty, and there are as few stages as possible. Stage 0 has the
    spouts and the bolts fused with them. A stage is stateful if one of its components is.
    """
    stage_of = dict.fromkeys(graph.topology.spouts, 0)
    arcs = [(edge.source, edge.target) for edge in graph.forward_edges]
    order = topological_order(graph.topology.components, arcs)
    inputs_of = graph.inputs()
    for component in order:
        for edge in inputs_of[component]:
            if edge.kind is not EdgeKind.CARRIED:
                at_least = stage_of[edge.source] + (edge.kind is EdgeKind.EXCHANGE)
                stage_of[component] = max(stage_of.get(component, 0), at_least)
    stages = []
    for index in range(max(stage_of.values()) + 1):
        components = tuple(component for component in order if stage_of[component] == index)
        if index == 0:
            kind = StageKind.SOURCE
        elif all(graph.verdicts[component].stateless for component in components):
            kind = StageKind.STATELESS
        else:
            kind = StageKind.STATEFUL
        stages.append(Stage(index, kind, components))
    return replace(graph, stages=tuple(stages))
