"""Pass: fuses bolts into the stage that feeds them."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.plan.passes.graph import topological_order


def fuse(graph: LogicalGraph) -> LogicalGraph:
    """Turns exchanges into local calls if that changes no result and keeps parallelism.

    A stateless bolt whose inputs all come from one stage, by groupings for which any task will do, runs in
    that stage, in the same Python call as its producers. A bolt with a carried input is not fused, because it
    gets tuples at the start of the next micro-batch.
    """
    stage_of = dict.fromkeys(graph.topology.spouts, 0)
    inputs_of = graph.inputs()
    fused: set[str] = set()
    arcs = [(edge.source, edge.target) for edge in graph.forward_edges]
    for component in topological_order(graph.topology.components, arcs):
        if component in stage_of:
            continue
        inputs = inputs_of[component]
        feeding = {stage_of[edge.source] for edge in inputs if edge.kind is not EdgeKind.CARRIED}
        if (
            graph.verdicts[component].stateless
            and len(feeding) == 1
            and all(edge.grouping.any_task for edge in inputs)
            and not any(edge.kind is EdgeKind.CARRIED for edge in inputs)
        ):
            fused.add(component)
            stage_of[component] = feeding.pop()
        else:
            stage_of[component] = max(feeding) + 1
    edges = tuple(replace(edge, kind=EdgeKind.LOCAL) if edge.target in fused else edge for edge in graph.edges)
    return replace(graph, edges=edges)
