"""What became of a topology: as a picture in text, as JSON, and as a Mermaid flowchart."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from storm_on_spark.api.constants import ACKER_COMPONENT
from storm_on_spark.api.streams import DEFAULT_STREAM
from storm_on_spark.plan.model import Delivery, Edge, PhysicalPlan, PlannedComponent, Stage, StageKind
from storm_on_spark.plan.words import (
    KINDS,
    STAGES,
    became,
    counted,
    of_tasks,
    stream_of,
    travels,
    where_state_lives,
    why_there,
)

_WIDTH = 100
"""Where the list of placements is wrapped."""


def explain_text(plan: PhysicalPlan) -> str:
    """Returns the plan as a picture: the stages from top to bottom, and what flows between them.

    Each box is one stage with its components: their tasks, why they are there, and whether they have state.
    A bolt that is fused hangs below the component that calls it. Each arrow is one Spark exchange, or, with
    one partition, the way from one stage to the next in the same Spark task; beside it the groupings that it
    carries out.
    """
    parts = [_summary(plan), ""]
    boxes = [_box_lines(stage, plan) for stage in plan.stages]
    width = max(len(line) for title, lines in boxes for line in (f"{title} ", *lines))
    for stage, (title, lines) in zip(plan.stages, boxes, strict=True):
        if stage.index:
            parts.extend(_arrow_lines(stage, plan))
        parts.append(f"┌─ {title} {'─' * (width - len(title) - 1)}┐")
        parts.extend(f"│ {line:<{width}} │" for line in lines)
        parts.append(f"└{'─' * (width + 2)}┘")
    carried = [edge for edge in plan.edges if edge.delivery is Delivery.CARRIED]
    parts.extend(_arrow([]))
    parts.append(f"  sink: {_sink(plan, carried)}")
    parts.extend(_section("back to the start of the next micro-batch", _edge_lines(carried, plan)))
    parts.extend(_section("state", _state_lines(plan)))
    if plan.partitions is not None:
        title = f"tasks on {counted(plan.partitions, 'partition')} (task@partition)"
        parts.extend(_section(title, _placement_lines(plan)))
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _sink(plan: PhysicalPlan, carried: Sequence[Edge]) -> str:
    tasks = [
        "acks and fails go to the spouts" if plan.acker_tasks else "nothing to ack",
        *(["carried tuples to the next micro-batch"] if carried else []),
    ]
    return ", ".join(tasks)


def _summary(plan: PhysicalPlan) -> str:
    spouts = sum(component.kind.is_spout for component in plan.components.values())
    tasks = sum(len(component.tasks) for component in plan.components.values())
    ackers = len(plan.acker_tasks)
    counts = [
        counted(spouts, "spout"),
        counted(len(plan.components) - spouts, "bolt"),
        counted(tasks, "task"),
        counted(ackers, "acker task") if ackers else "no acker: nothing is tracked",
    ]
    stages, exchanges = counted(len(plan.stages), "stage"), counted(_exchanges(plan), "exchange")
    joined = ": one partition, so one Spark operator executes all of them" if plan.joined else ""
    return f"{', '.join(counts)}\n{stages}, {exchanges}{joined}"


def _exchanges(plan: PhysicalPlan) -> int:
    return sum(map(plan.has_exchange, plan.stages))


def _box_lines(stage: Stage, plan: PhysicalPlan) -> tuple[str, list[str]]:
    joined = plan.joined and stage.kind is not StageKind.SOURCE
    title = f"stage {stage.index} · {stage.kind.value if joined else STAGES[stage.kind]}"
    if stage.kind is StageKind.ACKER:
        tasks = of_tasks(plan.acker_tasks)
        return title, [f"{ACKER_COMPONENT}  {tasks}  one XOR for every pending tuple tree"]
    rows = []
    for prefix, component in _tree(stage, plan):
        why = why_there(component, plan) if not component.kind.is_spout else ""
        state = "stateless: declared" if component.reason == "declared" else component.reason
        rows.append((prefix + component.id, KINDS[component.kind], of_tasks(component.tasks), why, state))
    return title, _columns(rows)


def _tree(stage: Stage, plan: PhysicalPlan) -> Iterator[tuple[str, PlannedComponent]]:
    """Yields the components of a stage with the branch that each hangs on, below the first that calls it."""
    position = {name: at for at, name in enumerate(stage.components)}
    callers: dict[str, list[str]] = {}
    for edge in plan.edges:
        if edge.delivery is Delivery.LOCAL and edge.target in position:
            callers.setdefault(edge.target, []).append(edge.source)
    below: dict[str | None, list[str]] = {}
    for name in stage.components:
        caller = min(callers[name], key=position.__getitem__) if name in callers else None
        below.setdefault(caller, []).append(name)

    # No recursion: a chain may be longer than Python's limit.
    waiting = [("", "", name) for name in reversed(below.get(None, []))]
    while waiting:
        branch, trunk, name = waiting.pop()
        yield branch, plan.components[name]
        children = [(f"{trunk}├─ ", f"{trunk}│  ", child) for child in below.get(name, [])]
        if children:
            children[-1] = f"{trunk}└─ ", f"{trunk}   ", children[-1][-1]
        waiting.extend(reversed(children))


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width]
        lines.append("  ".join(cells).rstrip())
    return lines


def _arrow_lines(stage: Stage, plan: PhysicalPlan) -> list[str]:
    if stage.kind is StageKind.ACKER:
        how = "all to" if len(plan.acker_tasks) == 1 else "tree id modulo"
        count = of_tasks(plan.acker_tasks) if len(plan.acker_tasks) == 1 else str(len(plan.acker_tasks))
        return _arrow(
            [f"every stage → {ACKER_COMPONENT}  acks and fails: {travels(plan, 0, stage.index)}, {how} {count}"]
        )
    arriving = [
        edge
        for edge in plan.edges
        if edge.delivery is Delivery.EXCHANGE and plan.components[edge.target].stage == stage.index
    ]
    return _arrow(_edge_lines(arriving, plan))


def _arrow(lines: Iterable[str]) -> list[str]:
    return [*(f"   │  {line}" for line in lines), "   ▼"]


def _edge_lines(edges: Sequence[Edge], plan: PhysicalPlan) -> list[str]:
    if not edges:
        return []
    left = [f"{stream_of(edge)} → {edge.target}" for edge in edges]
    width = max(map(len, left))
    lines = []
    for start, edge in zip(left, edges, strict=True):
        text = f"{start:<{width}}  {edge.grouping.describe()}: {became(edge, plan)}"
        between = _stages_between(edge, plan)
        lines.append(f"{text} (through {between})" if between else text)
    return lines


def _stages_between(edge: Edge, plan: PhysicalPlan) -> str:
    if edge.delivery is not Delivery.EXCHANGE:
        return ""
    passed = range(plan.components[edge.source].stage + 1, plan.components[edge.target].stage)
    return f"{'stage' if len(passed) == 1 else 'stages'} {', '.join(map(str, passed))}" if passed else ""


def _state_lines(plan: PhysicalPlan) -> list[str]:
    names = [name for stage in plan.stages for name in stage.components]
    places = [(name, where_state_lives(plan.components[name])) for name in names]
    rows = [(name, place) for name, place in places if place is not None]
    if plan.acker_tasks:
        rows.append((ACKER_COMPONENT, f"state store of stage {plan.stages[-1].index}, pending trees only"))
    return _columns(rows)


def _placement_lines(plan: PhysicalPlan) -> list[str]:
    # Fused tasks run wherever their caller does.
    components = [plan.components[name] for stage in plan.stages[1:] for name in stage.components]
    owners = [(component.id, component.tasks) for component in components if not component.fused]
    if plan.acker_tasks:
        owners.append((ACKER_COMPONENT, plan.acker_tasks))
    width = max((len(name) for name, _ in owners), default=0) + 2
    lines: list[str] = []
    for name, tasks in owners:
        text = " ".join(f"{task}@{plan.placement[task]}" for task in tasks)
        indent = " " * width
        lines.extend(textwrap.wrap(text, _WIDTH, initial_indent=f"{name:<{width}}", subsequent_indent=indent))
    return lines


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def explain_dict(plan: PhysicalPlan) -> dict[str, Any]:
    """Returns the plan in terms of JSON; the same plan gives the same document.

    Example:
        >>> from storm_on_spark.plan.compile import compile_plan
        >>> from storm_on_spark.api import BaseRichSpout, TopologyBuilder
        >>> class Silence(BaseRichSpout):
        ...     def next_tuple(self): ...
        >>> builder = TopologyBuilder()
        >>> silence = builder.set_spout("silence", Silence())
        >>> explain_dict(compile_plan(builder.create_topology()))["stages"][0]
        {'index': 0, 'kind': 'source', 'components': ['silence']}
    """
    return {
        "stages": [
            {"index": stage.index, "kind": stage.kind.value, "components": list(stage.components)}
            for stage in plan.stages
        ],
        "exchanges": _exchanges(plan),
        "components": {component.id: _component_dict(component, plan) for component in plan.components.values()},
        "edges": [
            {
                "source": edge.source,
                "stream": edge.stream,
                "target": edge.target,
                "grouping": edge.grouping.describe(),
                "delivery": edge.delivery.value,
                "becomes": became(edge, plan),
            }
            for edge in plan.edges
        ],
        "acker_tasks": list(plan.acker_tasks),
        "partitions": plan.partitions,
        "placement": {str(task): partition for task, partition in plan.placement.items()},
        "keys": {str(task): key for task, key in plan.keys.items()},
    }


def _component_dict(component: PlannedComponent, plan: PhysicalPlan) -> dict[str, Any]:
    return {
        "kind": component.kind.value,
        "tasks": list(component.tasks),
        "executors": component.executors,
        "stage": component.stage,
        "fused": component.fused,
        "why": why_there(component, plan),
        "stateless": component.stateless,
        "reason": component.reason,
        "state": where_state_lives(component),
    }


def explain_mermaid(plan: PhysicalPlan) -> str:
    """Returns the plan as a Mermaid flowchart, which GitHub, notebooks and many editors draw.

    Thin arrows are calls, thick ones exchanges and dotted ones go to the next micro-batch. Spouts are
    rounded, and what has state is a cylinder.
    """
    lines = ["flowchart LR"]
    # Ids of our own: a component's id may hold anything, also a word that means something to Mermaid.
    nodes = {name: f"c{at}" for at, name in enumerate(plan.components)}
    for stage in plan.stages:
        lines.append(f'  subgraph s{stage.index}["stage {stage.index}: {stage.kind.value}"]')
        lines.extend(f"    {_node(nodes[name], plan.components[name])}" for name in stage.components)
        if stage.kind is StageKind.ACKER:
            lines.append(f'    acker{{{{"{ACKER_COMPONENT}<br/>{of_tasks(plan.acker_tasks)}"}}}}')
        lines.append("  end")
    for edge in plan.edges:
        label = edge.grouping.describe()
        if edge.delivery is Delivery.CARRIED:
            label += ", next micro-batch"
        if edge.stream != DEFAULT_STREAM:
            label = f"{edge.stream}: {label}"
        arrow = _ARROWS[edge.delivery]
        lines.append(f'  {nodes[edge.source]} {arrow}|"{_escaped(label)}"| {nodes[edge.target]}')
    if plan.acker_tasks:
        lines.extend(f'  s{stage.index} ==>|"acks"| acker' for stage in plan.stages[:-1])
    return "\n".join(lines) + "\n"


_ARROWS = {Delivery.LOCAL: "-->", Delivery.EXCHANGE: "==>", Delivery.CARRIED: "-.->"}


def _node(node: str, component: PlannedComponent) -> str:
    label = f"{_escaped(component.id)}<br/>{KINDS[component.kind]}, {of_tasks(component.tasks)}"
    if component.kind.is_spout:
        return f'{node}(["{label}"])'
    return f'{node}["{label}"]' if component.stateless else f'{node}[("{label}")]'


def _escaped(text: str) -> str:
    """Returns `text` so that Mermaid shows it as it is, by its character references."""
    return "".join(c if c.isalnum() or c in " _-.,:()" else f"#{ord(c)};" for c in text)
