"""A topology's plan as a Mermaid flowchart."""

from __future__ import annotations

from storm_on_spark.api.streams.constants import ACKER_COMPONENT
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.plan.explain.words import KINDS, lowered, of_tasks
from storm_on_spark.plan.model import EdgeKind, PlacedPlan, PlannedComponent, StageKind


def explain_mermaid(plan: PlacedPlan) -> str:
    """Returns the plan as a Mermaid flowchart, which GitHub, notebooks and many editors draw.

    Operators are drawn around their stages. Thin arrows stay in an operator, thick ones are exchanges and dotted ones
    go to the next micro-batch. Spouts are rounded, and what has state is a cylinder.
    """
    lines = ["flowchart LR"]
    # Numbered ids: a component's id may contain any text, also a keyword of Mermaid.
    nodes = {name: f"c{at}" for at, name in enumerate(plan.components)}
    for at, operator in enumerate(plan.operators):
        lines.append(f'  subgraph o{at}["operator {at}: {_escaped(lowered(operator))}"]')
        for stage in operator.stages:
            lines.append(f'    subgraph s{stage.index}["stage {stage.index}: {stage.kind.value}"]')
            lines.extend(f"      {_node(nodes[name], plan.components[name])}" for name in stage.components)
            if stage.kind is StageKind.ACKER:
                lines.append(f'      acker{{{{"{ACKER_COMPONENT}<br/>{of_tasks(plan.acker_tasks)}"}}}}')
            lines.append("    end")
        lines.append("  end")
    for edge in plan.edges:
        label = edge.grouping.describe()
        if edge.kind is EdgeKind.CARRIED:
            label += ", next micro-batch"
        if edge.stream != DEFAULT_STREAM:
            label = f"{edge.stream}: {label}"
        source, target = (plan.components[name].stage for name in (edge.source, edge.target))
        arrow = "-.->" if edge.kind is EdgeKind.CARRIED else _arrow_between(plan, source, target)
        lines.append(f'  {nodes[edge.source]} {arrow}|"{_escaped(label)}"| {nodes[edge.target]}')
    if plan.acker_tasks:
        last = plan.stages[-1].index
        lines.extend(f'  s{at} {_arrow_between(plan, at, last)}|"acks"| acker' for at in range(last))
    return "\n".join(lines) + "\n"


def _arrow_between(plan: PlacedPlan, source: int, target: int) -> str:
    return "-->" if plan.operator_of[source] == plan.operator_of[target] else "==>"


def _node(node: str, component: PlannedComponent) -> str:
    label = f"{_escaped(component.id)}<br/>{KINDS[component.kind]}, {of_tasks(component.tasks)}"
    if component.kind.is_spout:
        return f'{node}(["{label}"])'
    return f'{node}["{label}"]' if component.stateless else f'{node}[("{label}")]'


def _escaped(text: str) -> str:
    """Returns `text` so that Mermaid shows it as it is, by its character references."""
    return "".join(c if c.isalnum() or c in " _-.,:()" else f"#{ord(c)};" for c in text)
