"""Pass: adds the acker."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import Stage, StageKind


def add_acker(graph: LogicalGraph) -> LogicalGraph:
    """Adds the acker as the last stage: it needs the reports of all other stages.

    Without tracking there is no acker. Its stage lists no components, because the acker is not one of the topology's.
    """
    if not graph.acker_tasks:
        return graph
    return replace(graph, stages=(*graph.stages, Stage(len(graph.stages), StageKind.ACKER, ())))
