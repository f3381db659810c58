"""A topology's plan in terms of JSON."""

from __future__ import annotations

from typing import Any

from storm_on_spark.plan.explain.words import became, exchanges_of, lowered, what_is_live, where_state_lives, why_there
from storm_on_spark.plan.model import PlacedPlan, PlannedComponent


def explain_dict(plan: PlacedPlan) -> dict[str, Any]:
    """Returns the plan as a JSON object; the same plan gives the same document.

    Example:
        >>> from storm_on_spark.plan.compile import compile_graph, place
        >>> from storm_on_spark.api import BaseRichSpout, TopologyBuilder
        >>> class Silence(BaseRichSpout):
        ...     def next_tuple(self): ...
        >>> builder = TopologyBuilder()
        >>> silence = builder.set_spout("silence", Silence())
        >>> explain_dict(place(compile_graph(builder.create_topology()), 1))["operators"]
        [{'stages': [0, 1], 'exchange': False, 'state': True, 'source': 'spout logs', \
'becomes': 'transformWithState: reads the spout logs'}]
    """
    return {
        **chain_dict(plan),
        "exchanges": exchanges_of(plan),
        "components": {component.id: _component_dict(component, plan) for component in plan.components.values()},
        "edges": [
            {
                "source": edge.source,
                "stream": edge.stream,
                "target": edge.target,
                "grouping": edge.grouping.describe(),
                "kind": edge.kind.value,
                "becomes": became(edge, plan),
            }
            for edge in plan.edges
        ],
        "acker_tasks": list(plan.acker_tasks),
        "live": what_is_live(plan),
        "placement": {str(task): partition for task, partition in plan.placement.items()},
        "keys": {str(task): key for task, key in plan.keys.items()},
    }


def chain_dict(plan: PlacedPlan) -> dict[str, Any]:
    """Returns the operators of a plan, their stages and the number of partitions, as a cluster's pages show them.

    Example:
        >>> from storm_on_spark.plan.compile import compile_graph, place
        >>> from storm_on_spark.api import BaseRichSpout, TopologyBuilder
        >>> class Silence(BaseRichSpout):
        ...     def next_tuple(self): ...
        >>> builder = TopologyBuilder()
        >>> silence = builder.set_spout("silence", Silence())
        >>> chain = chain_dict(place(compile_graph(builder.create_topology()), 1))
        >>> chain["partitions"], chain["stages"][0]
        (1, {'index': 0, 'kind': 'source', 'components': ['silence']})
    """
    return {
        "operators": [
            {
                "stages": [stage.index for stage in operator.stages],
                "exchange": operator.exchange,
                "state": operator.state,
                "source": None if operator.source is None else operator.source.value,
                "becomes": lowered(operator),
            }
            for operator in plan.operators
        ],
        "stages": [
            {"index": stage.index, "kind": stage.kind.value, "components": list(stage.components)}
            for stage in plan.stages
        ],
        "partitions": plan.partitions,
    }


def _component_dict(component: PlannedComponent, plan: PlacedPlan) -> dict[str, Any]:
    return {
        "kind": component.kind.value,
        "tasks": list(component.tasks),
        "executors": component.executors,
        "stage": component.stage,
        "fused": component.fused,
        "why": why_there(component, plan),
        "stateless": component.stateless,
        "reason": component.reason,
        "state": where_state_lives(component, plan),
    }
