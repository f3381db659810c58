"""A plan as a notebook shows it."""

from __future__ import annotations

from storm_on_spark.api.text import html
from storm_on_spark.api.text.graph import Edge, Node, graph
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.plan.model import PlacedPlan

_ACKER = "__acker"


def plan_html(plan: PlacedPlan) -> str:
    """Returns a picture, stage by stage from left to right, and a table that says why."""
    found = explain_dict(plan)
    components, stages = found["components"], found["stages"]
    nodes = [
        Node(
            name,
            name,
            f"stage {part['stage']}, {html.counted(len(part['tasks']), 'task')}{', fused' if part['fused'] else ''}",
            "spout" if part["kind"].endswith("spout") else "bolt",
        )
        for name, part in components.items()
    ]
    edges = [Edge(edge["source"], edge["target"], edge["grouping"]) for edge in found["edges"]]
    acker = None
    if found["acker_tasks"]:
        note = f"stage {stages[-1]['index']}, {html.counted(len(found['acker_tasks']), 'task')}"
        acker = Node(_ACKER, _ACKER, note, "acker")
    rows = [
        [name, part["stage"], part["why"], part["reason"], part["state"]]
        for name, part in sorted(components.items(), key=lambda item: (item[1]["stage"], item[1]["fused"]))
    ]
    count = ", ".join(
        (
            f"{html.counted(len(stages), 'stage')} in {html.counted(len(found['operators']), 'operator')}",
            html.counted(found["exchanges"], "exchange"),
            html.counted(found["partitions"], "partition"),
        )
    )
    return html.block(
        html.line(f"Compiled topology: {count}", strong=True),
        graph(nodes, edges, acker, "every stage: acks and fails"),
        html.table(["component", "stage", "why there", "state?", "kept in"], rows),
        html.table(
            ["from", "stream", "to", "grouping", "becomes"],
            [[edge[key] for key in ("source", "stream", "target", "grouping", "becomes")] for edge in found["edges"]],
        ),
    )
