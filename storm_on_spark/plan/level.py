"""Pass: which stage executes which component."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.graph import topological_order
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import Delivery, Stage, StageKind


def level(graph: LogicalGraph) -> LogicalGraph:
    """Turns the graph into a chain of stages, by longest path.

    The number of a component's stage is the greatest number of exchanges between a spout and it. So every
    exchange leads to a later stage, no stage is empty, and there are as few of them as can be. The spouts and
    what is fused with them are stage 0. A stage is stateful as soon as one of its components is.
    """
    stage_of = dict.fromkeys(graph.topology.spouts, 0)
    arcs = [(edge.source, edge.target) for edge in graph.forward_edges]
    order = topological_order(graph.topology.components, arcs)
    inputs_of = graph.inputs()
    for component in order:
        for edge in inputs_of[component]:
            if edge.delivery is not Delivery.CARRIED:
                at_least = stage_of[edge.source] + (edge.delivery is Delivery.EXCHANGE)
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
