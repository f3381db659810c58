"""What is live in real time: whether tasks may be, and which live process executes which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.plan.model import WITH_STATE, PlacedPlan, PlannedComponent, Stage
from storm_on_spark.plan.settings import LiveSettings, TaskSettings

Moved = tuple[tuple[int, int], ...]
"""Tasks that are in another live process than they began in, each with that process, ascending."""

_COLUMNAR = (ComponentKind.BATCH_SPOUT, ComponentKind.BATCH_BOLT)


def why_batches(components: Mapping[str, PlannedComponent], stages: Iterable[Stage], conf: Mapping[str, object]) -> str:
    """Returns why the tuples of a topology wait for micro-batches, in whatever session; "" if they needn't.

    Args:
        components: of the topology, by id.
        stages: that execute them.
        conf: the topology's configuration.
    """
    settings = LiveSettings.of(conf)
    if not settings.allowed:
        return f"topology.profile is {settings.profile}"

    def named(parts: Iterable[PlannedComponent]) -> str:
        return ", ".join(part.id for part in parts)

    # Nothing may be executed before it is planned beside a bolt that writes a micro-batch under its plan.
    if sinks := named(part for part in components.values() if part.planned_first):
        return f"the tuples of {sinks} are written with each micro-batch"
    if waiting := next((part for part in components.values() if part.waits), None):
        return f"{waiting.id} {waiting.waits}"
    native = [part for part in components.values() if part.kind is ComponentKind.NATIVE_SPOUT]
    if by_spark := [part for part in native if part.only_spark is not None]:
        why = "".join(f"; {part.only_spark}" for part in by_spark if part.only_spark)
        return f"Spark itself reads the rows of {named(by_spark)}, in micro-batches{why}"
    if native and not settings.asked:
        return f"Spark reads the rows of {named(native)} faster, in micro-batches; topology.profile: realtime is sooner"
    if settings.spouts != "driver":
        return "spouts on executors are not heard between micro-batches"
    if not any(stage.kind in WITH_STATE for stage in stages):
        return "nothing is acked and no bolt has state, so there is nothing to hand over at a checkpoint"
    if not settings.asked and (columnar := named(part for part in components.values() if part.kind in _COLUMNAR)):
        return f"record batches, as of {columnar}, are faster in micro-batches; topology.profile: realtime is sooner"
    return ""


def why_not_live(plan: PlacedPlan) -> str:
    """Returns why the tuples of a plan wait for micro-batches; "" if its tasks are live."""
    reason = why_batches(plan.components, plan.stages, plan.conf) or plan.session
    if reason or len(plan.operators) == 1:
        return reason
    if not LiveSettings.of(plan.conf).asked:
        return f"there are {plan.partitions} partitions, and tasks can be live on one only (topology.partitions)"
    return (
        f"tasks on {plan.partitions} partitions execute in micro-batches; topology.partitions must be 1, and "
        "topology.workers says how many live processes there are"
    )


def processes_of(plan: PlacedPlan) -> int:
    """Returns how many live processes a topology has: `topology.workers`, but no more than any bolt has tasks.

    None, 0, where tasks execute in micro-batches.
    """
    return 0 if why_not_live(plan) else min(TaskSettings.of(plan.conf).workers, most_processes(plan))


def most_processes(plan: PlacedPlan) -> int:
    """Returns how many live processes a topology could use: as many as a bolt has tasks."""
    return max((len(part.tasks) for part in plan.components.values() if not part.kind.is_spout), default=1)


def homes_of(plan: PlacedPlan, processes: int, moved: Moved = ()) -> dict[int, int]:
    """Returns the live process of each task.

    At first the tasks of each component are dealt out in turn, from the first process on. So tasks of the same number
    in their components share a process, and components of one task are all in the first one, with the ackers: what they
    send to each other stays there.

    Args:
        plan: of the topology.
        processes: how many there are; the first is 0.
        moved: what has moved since.
    """
    parts = (part.tasks for part in plan.components.values())
    homes = {task: at % processes for tasks in parts for at, task in enumerate(tasks)}
    return homes | dict.fromkeys(plan.acker_tasks, 0) | dict(moved)


def staying(plan: PlacedPlan) -> frozenset[int]:
    """Returns the tasks that stay in the live process that they begin in.

    These are ackers, as the first process tells spouts what they find, and tasks that may have a child process, as
    those of a `ShellBolt`: others on the same machine can use it, but no other machine has its memory.
    """
    children = (part.tasks for part in plan.components.values() if part.turn_secs is not None)
    return frozenset(plan.acker_tasks).union(*children)


def moved_from(first: Mapping[int, int], homes: Mapping[int, int]) -> Moved:
    """Returns what has moved from the first homes to the present ones."""
    return tuple(sorted((task, home) for task, home in homes.items() if first[task] != home))
