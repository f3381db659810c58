"""Pass: which operator of Spark executes which stages."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.model import Operator, Source


def add_operators(graph: LogicalGraph) -> LogicalGraph:
    """Makes each stage its own operator.

    The first reads the spout logs. Exchanges bring the others the rows of the one before.
    """
    operators = (
        Operator((stage,), exchange=bool(stage.index), source=None if stage.index else Source.SPOUT_LOGS)
        for stage in graph.stages
    )
    return replace(graph, operators=tuple(operators))
