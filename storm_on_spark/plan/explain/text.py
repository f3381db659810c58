"""A topology's plan as a picture in text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from storm_on_spark.api.streams.constants import ACKER_COMPONENT
from storm_on_spark.plan.explain.words import (
    KINDS,
    became,
    counted,
    exchanges_of,
    lowered,
    of_tasks,
    stream_of,
    travels,
    what_is_live,
    where_state_lives,
    why_there,
)
from storm_on_spark.plan.model import Edge, EdgeKind, PlacedPlan, PlannedComponent, Stage, StageKind

_WIDTH = 100
"""Where the list of placements is wrapped, unless the width is given."""
_LEAST_WIDTH = 40
"""The least width at which the picture is readable."""
_HEAD = 3
"""The cells of a row that stay in one line if the picture is narrow: component, kind, tasks."""


def explain_text(plan: PlacedPlan, width: int | None = None) -> str:
    """Returns the plan as a picture: operators and their stages from top to bottom, and what flows between them.

    Each operator has a line that says what it is in Spark. Below it, each box is one of its stages with the
    components: their tasks, why they are there, and whether they have state. A bolt that is fused hangs below the
    component that calls it. Each arrow is the way to the next stage, within the operator or by an exchange; beside it
    stand the groupings that it carries out.

    Args:
        plan: the plan.
        width: the longest line, at least 40; None for no limit.
    """
    width = None if width is None else max(width, _LEAST_WIDTH)
    parts = [*(line for text in _summary(plan).splitlines() for line in _wrapped(text, width)), ""]
    boxes = [_box_lines(stage, plan, None if width is None else width - 4) for stage in plan.stages]
    inner = max(len(line) for title, lines in boxes for line in (f"{title} ", *lines))
    for at, operator in enumerate(plan.operators):
        for stage in operator.stages:
            if stage.index:
                parts.extend(_arrow_lines(stage, plan, width))
            if stage is operator.stages[0]:
                parts.extend(_wrapped(f"operator {at} · {lowered(operator)}", width))
            title, lines = boxes[stage.index]
            parts.append(f"┌─ {title} {'─' * (inner - len(title) - 1)}┐")
            parts.extend(f"│ {line:<{inner}} │" for line in lines)
            parts.append(f"└{'─' * (inner + 2)}┘")
    carried = [edge for edge in plan.edges if edge.kind is EdgeKind.CARRIED]
    parts.extend(_arrow([], width))
    parts.extend(_wrapped(f"  sink: {_sink(plan, carried)}", width))
    parts.extend(_section("back to the start of the next micro-batch", _edge_lines(carried, plan), width))
    parts.extend(_section("state", _state_lines(plan), width))
    live = what_is_live(plan)
    parts.extend(_section("live, in a process beside Spark", [] if live is None else [live], width))
    title = f"tasks on {counted(plan.partitions, 'partition')} (task@partition)"
    parts.extend(_section(title, _placement_lines(plan, width), width))
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """Returns a line, wrapped at `width`; lines after the first are indented."""
    if width is None or len(text) <= width:
        return [text]
    begin = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(text, width, subsequent_indent=f"{begin}{indent or '    '}")


def _sink(plan: PlacedPlan, carried: Sequence[Edge]) -> str:
    tasks = [
        "acks and fails go to the spouts" if plan.acker_tasks else "nothing to ack",
        *(["carried tuples to the next micro-batch"] if carried else []),
    ]
    return ", ".join(tasks)


def _summary(plan: PlacedPlan) -> str:
    spouts = sum(component.kind.is_spout for component in plan.components.values())
    tasks = sum(len(component.tasks) for component in plan.components.values())
    ackers = len(plan.acker_tasks)
    counts = [
        counted(spouts, "spout"),
        counted(len(plan.components) - spouts, "bolt"),
        counted(tasks, "task"),
        counted(ackers, "acker task") if ackers else "no acker: nothing is tracked",
    ]
    stages = f"{counted(len(plan.stages), 'stage')} in {counted(len(plan.operators), 'operator')}"
    exchanges, partitions = counted(exchanges_of(plan), "exchange"), counted(plan.partitions, "partition")
    return f"{', '.join(counts)}\n{stages}, {exchanges}, {partitions}"


def _box_lines(stage: Stage, plan: PlacedPlan, room: int | None) -> tuple[str, list[str]]:
    title = f"stage {stage.index} · {stage.kind.value}"
    if stage.kind is StageKind.ACKER:
        tasks = of_tasks(plan.acker_tasks)
        return title, _wrapped(f"{ACKER_COMPONENT}  {tasks}  one XOR for every pending tuple tree", room)
    rows = []
    for prefix, component in _tree(stage, plan):
        why = why_there(component, plan) if not component.kind.is_spout else ""
        state = "stateless: declared" if component.reason == "declared" else component.reason
        rows.append((prefix + component.id, KINDS[component.kind], of_tasks(component.tasks), why, state))
    lines = _columns(rows)
    return title, lines if room is None or max(map(len, lines)) <= room else _narrow(rows, room)


def _narrow(rows: Sequence[Sequence[str]], room: int) -> list[str]:
    """Returns rows with their last cells in their own line."""
    lines = []
    for head, row in zip(_columns([row[:_HEAD] for row in rows]), rows, strict=True):
        # What hangs below a component has a line to it.
        trunk = row[0][: len(row[0]) - len(row[0].lstrip("│├└─ "))]
        below = trunk.replace("├─", "│ ").replace("└─", "  ") + "    "
        lines += textwrap.wrap(head, room, subsequent_indent=below) if len(head) > room else [head]
        for cell in filter(None, row[_HEAD:]):
            lines += textwrap.wrap(cell, room, initial_indent=below, subsequent_indent=below + "  ")
    return lines


def _tree(stage: Stage, plan: PlacedPlan) -> Iterator[tuple[str, PlannedComponent]]:
    """Yields the components of a stage, each with its branch, below the first component that calls it."""
    position = {name: at for at, name in enumerate(stage.components)}
    callers: dict[str, list[str]] = {}
    for edge in plan.edges:
        if edge.kind is EdgeKind.LOCAL and edge.target in position:
            callers.setdefault(edge.target, []).append(edge.source)
    below: dict[str | None, list[str]] = {}
    for name in stage.components:
        caller = min(callers[name], key=position.__getitem__) if name in callers else None
        below.setdefault(caller, []).append(name)

    # A loop, because a chain may be longer than Python's limit of recursion.
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


def _arrow_lines(stage: Stage, plan: PlacedPlan, width: int | None) -> list[str]:
    if stage.kind is StageKind.ACKER:
        how = "all to" if len(plan.acker_tasks) == 1 else "tree id modulo"
        count = of_tasks(plan.acker_tasks) if len(plan.acker_tasks) == 1 else str(len(plan.acker_tasks))
        return _arrow(
            [f"every stage → {ACKER_COMPONENT}  acks and fails: {travels(plan, 0, stage.index)}, {how} {count}"], width
        )
    arriving = [
        edge
        for edge in plan.edges
        if edge.kind is EdgeKind.EXCHANGE and plan.components[edge.target].stage == stage.index
    ]
    return _arrow(_edge_lines(arriving, plan), width)


def _arrow(lines: Iterable[str], width: int | None) -> list[str]:
    room = None if width is None else width - 6
    return [*(f"   │  {part}" for line in lines for part in _wrapped(line, room)), "   ▼"]


def _edge_lines(edges: Sequence[Edge], plan: PlacedPlan) -> list[str]:
    if not edges:
        return []
    labels = [f"{stream_of(edge)} → {edge.target}" for edge in edges]
    width = max(map(len, labels))
    lines = []
    for start, edge in zip(labels, edges, strict=True):
        text = f"{start:<{width}}  {edge.grouping.describe()}: {became(edge, plan)}"
        between = _stages_between(edge, plan)
        lines.append(f"{text} (through {between})" if between else text)
    return lines


def _stages_between(edge: Edge, plan: PlacedPlan) -> str:
    if edge.kind is not EdgeKind.EXCHANGE:
        return ""
    passed = range(plan.components[edge.source].stage + 1, plan.components[edge.target].stage)
    return f"{'stage' if len(passed) == 1 else 'stages'} {', '.join(map(str, passed))}" if passed else ""


def _state_lines(plan: PlacedPlan) -> list[str]:
    names = [name for stage in plan.stages for name in stage.components]
    places = [(name, where_state_lives(plan.components[name], plan)) for name in names]
    rows = [(name, place) for name, place in places if place is not None]
    if plan.acker_tasks:
        rows.append((ACKER_COMPONENT, f"state store of operator {plan.operator_of[-1]}, pending trees only"))
    return _columns(rows)


def _placement_lines(plan: PlacedPlan, width: int | None) -> list[str]:
    # Fused tasks run wherever their caller does.
    components = [plan.components[name] for stage in plan.stages[1:] for name in stage.components]
    owners = [(component.id, component.tasks) for component in components if not component.fused]
    if plan.acker_tasks:
        owners.append((ACKER_COMPONENT, plan.acker_tasks))
    room = _WIDTH if width is None else width - 2
    column = min(max((len(name) for name, _ in owners), default=0) + 2, room // 2)
    lines: list[str] = []
    for name, tasks in owners:
        text = " ".join(f"{task}@{plan.placement[task]}" for task in tasks)
        indent = " " * column
        lines.extend(textwrap.wrap(text, room, initial_indent=f"{name:<{column}}", subsequent_indent=indent))
    return lines


def _section(title: str, lines: Sequence[str], width: int | None) -> list[str]:
    if not lines:
        return []
    return ["", *_wrapped(title, width), *(part for line in lines for part in _wrapped(f"  {line}", width))]
