"""Pass: where tuple trees are tracked."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import Stage, StageKind


def add_acker(graph: LogicalGraph) -> LogicalGraph:
    """Adds the acker as the last stage, where it sees what every other stage did.

    Where nothing is tracked there is none. The stage lists no components, since the acker is none of the
    topology's.
    """
    if not graph.acker_tasks:
        return graph
    return replace(graph, stages=(*graph.stages, Stage(len(graph.stages), StageKind.ACKER, ())))
