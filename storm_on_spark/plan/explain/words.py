"""Wording about plans that `explain` and the messages about checkpoints share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from storm_on_spark.api.custom_grouping import CustomGrouping
from storm_on_spark.api.streams.grouping import KeyedGrouping
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.plan.live_homes import most_processes, processes_of, why_not_live
from storm_on_spark.plan.model import Edge, EdgeKind, Operator, PlacedPlan, PlannedComponent, StageKind
from storm_on_spark.plan.settings import LiveSettings

KINDS = {
    ComponentKind.SPOUT: "spout",
    ComponentKind.BATCH_SPOUT: "batch spout",
    ComponentKind.NATIVE_SPOUT: "native spout",
    ComponentKind.BOLT: "bolt",
    ComponentKind.BASIC_BOLT: "basic bolt",
    ComponentKind.BATCH_BOLT: "batch bolt",
}


def listed(names: Iterable[object]) -> str:
    """Returns names in the form that a sentence needs.

    Example:
        >>> listed(["word", "day"]), listed([])
        ('word, day', 'none')
    """
    return ", ".join(map(str, names)) or "none"


def of_tasks(tasks: Sequence[int]) -> str:
    """Returns which tasks these are.

    Example:
        >>> of_tasks([7]), of_tasks([2, 3]), of_tasks([2, 3, 4, 5])
        ('task 7', 'tasks 2, 3', 'tasks 2 to 5')
    """
    if len(tasks) > 3 and tasks[-1] - tasks[0] == len(tasks) - 1:
        return f"tasks {tasks[0]} to {tasks[-1]}"
    return f"{'task' if len(tasks) == 1 else 'tasks'} {listed(tasks)}"


def counted(count: int, what: str) -> str:
    """Returns a number with its noun.

    Example:
        >>> counted(1, "stage"), counted(2, "topology"), counted(0, "Nimbus")
        ('1 stage', '2 topologies', '0 Nimbuses')
    """
    if count == 1:
        return f"1 {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("y") else f"{count} {what}{'es' if what.endswith('s') else 's'}"


def stream_of(edge: Edge) -> str:
    """Returns where an edge begins: the component, and the stream if it is not the default one."""
    return edge.source if edge.stream == DEFAULT_STREAM else f"{edge.source}:{edge.stream}"


def shared_out(edge: Edge, plan: PlacedPlan) -> str:
    """Returns to which tasks the tuples of an edge go, e.g. `hash of word over tasks 2, 3`."""
    tasks = plan.components[edge.target].tasks
    grouping = edge.grouping
    return grouping.words.format(
        tasks=of_tasks(tasks),
        first=of_tasks(tasks[:1]),
        fields=listed(grouping.fields) if isinstance(grouping, KeyedGrouping) else "",
        chooser=type(grouping.grouping).__qualname__ if isinstance(grouping, CustomGrouping) else "",
    )


def became(edge: Edge, plan: PlacedPlan) -> str:
    """Returns how the plan implements a grouping, e.g. `exchange, hash of word over tasks 2, 3`."""
    if edge.kind is EdgeKind.LOCAL:
        return "a call within the stage"
    source, target = plan.components[edge.source].stage, plan.components[edge.target].stage
    carried = edge.kind is EdgeKind.CARRIED
    how = "carried over to the next micro-batch" if carried else travels(plan, source, target)
    return f"{how}, {shared_out(edge, plan)}"


def travels(plan: PlacedPlan, source: int, target: int) -> str:
    """Returns how chunks get from one stage to a later one."""
    return "in the same operator" if plan.operator_of[source] == plan.operator_of[target] else "exchange"


def lowered(operator: Operator) -> str:
    """Returns what an operator is in Spark, e.g. `transformWithState by task`."""
    if operator.source is not None:
        return f"{'transformWithState' if operator.state else 'data source'}: reads the {operator.source.value}"
    if not operator.state:
        return "mapInArrow"
    acker = operator.stages[0].kind is StageKind.ACKER
    return f"transformWithState by {'acker task' if acker else 'task'}"


def why_there(component: PlannedComponent, plan: PlacedPlan) -> str:
    """Returns why a component is in its stage."""
    if component.kind.is_spout:
        return "spout"
    if component.fused:
        sources: dict[str, list[str]] = {}
        for edge in plan.edges:
            if edge.target == component.id:
                sources.setdefault(edge.grouping.describe(), []).append(stream_of(edge))
        return "fused: " + ", ".join(f"{how} from {listed(names)}" for how, names in sources.items())
    return f"level {component.stage}"


def what_is_live(plan: PlacedPlan) -> str | None:
    """Returns what executes between micro-batches, or why nothing does; `None` with a profile that asks for batches."""
    settings = LiveSettings.of(plan.conf)
    if not settings.allowed:
        return None
    if reason := why_not_live(plan):
        return f"nothing: {reason}"
    processes, most = processes_of(plan), most_processes(plan)
    # Whoever has many cores asks why one is busy.
    alone = f", in one process on one core (topology.workers allows up to {most})" if most > 1 else ""
    shared = f", in {processes} processes" if processes > 1 else alone
    of_native = ", ".join(plan.native_spouts)
    reading = f"; {of_native} read{'s' * (len(plan.native_spouts) == 1)} without Spark" if plan.native_spouts else ""
    checkpoint = f"; a micro-batch each {settings.checkpoint_ms} ms is a checkpoint"
    return f"all tasks of bolts and acker{shared}{reading}{checkpoint}"


def where_state_lives(component: PlannedComponent, plan: PlacedPlan) -> str | None:
    """Returns where the state of a component is kept; `None` for one that has none."""
    if component.kind.is_spout:
        return "beside the spout log"
    if component.stateless:
        return None
    # A bolt with state is never fused, so it is never in the source stage.
    return f"state store of operator {plan.operator_of[component.stage]}, by task"


def exchanges_of(plan: PlacedPlan) -> int:
    """Returns how many exchanges of Spark a plan has."""
    return sum(operator.exchange for operator in plan.operators)
