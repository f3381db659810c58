"""Pass: marks the edges that close a cycle."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import EdgeKind
from storm_on_spark.plan.passes.graph import distances, successors


def mark_back_edges(graph: LogicalGraph) -> LogicalGraph:
    """Marks the edges that close a cycle as carried; the other edges form no cycle.

    Storm allows cycles, a Spark query does not: the tuples of a back edge reach their consumer in the next
    micro-batch. A back edge leads to a component on the current path of a depth-first search from the spouts. The
    search visits the component nearest to a spout first, and orders equals by name. So the choice depends on the
    graph alone, and as few edges as possible lead back towards the spouts.
    """
    components = graph.topology.components
    following = successors(components, [(edge.source, edge.target) for edge in graph.edges])
    spouts = sorted(graph.topology.spouts)
    away = distances(spouts, following)
    for targets in following.values():
        targets.sort(key=lambda target: (away[target], target))

    back: set[tuple[str, str]] = set()
    seen: set[str] = set()
    # The path with what is left to look at from each node; no recursion, as a chain may be longer than its
    # limit.
    for spout in spouts:
        path = {spout: iter(following[spout])}
        seen.add(spout)
        while path:
            node = next(reversed(path))
            target = next(path[node], None)
            if target is None:
                del path[node]
            elif target in path:
                back.add((node, target))
            elif target not in seen:
                seen.add(target)
                path[target] = iter(following[target])
    edges = tuple(
        replace(edge, kind=EdgeKind.CARRIED) if (edge.source, edge.target) in back else edge for edge in graph.edges
    )
    return replace(graph, edges=edges)
