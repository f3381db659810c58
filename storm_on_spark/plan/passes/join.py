"""Pass: one operator in place of many, where there is nothing to exchange."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.plan.logical import LogicalGraph


def join(graph: LogicalGraph) -> LogicalGraph:
    """With one partition, turns the chain of operators into one that executes all stages, in one call of Python.

    An operator with state costs a micro-batch several times what a stage within one does (decision 1). Where nothing
    has state, nothing is changed: there is no operator with state that could take the others in.
    """
    if graph.partitions > 1 or not any(operator.state for operator in graph.operators):
        return graph
    return replace(graph, operators=(replace(graph.operators[0], stages=graph.stages),))
