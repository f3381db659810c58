"""Which live process executes which tasks, in real time."""

from __future__ import annotations

from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.plan.settings import LiveSettings, TaskSettings


def processes_of(plan: PlacedPlan) -> int:
    """Returns how many live processes a topology has: `topology.workers`, but no more than any bolt has tasks.

    None, 0, where tasks execute in micro-batches. Nothing is executed before it is planned beside a bolt that writes a
    micro-batch under its plan, such as `DeltaBolt` and `FileBolt`: a topology with such a bolt can't be live either.
    """
    sinks = any(part.planned_first for part in plan.components.values())
    if not LiveSettings.of(plan.conf).realtime or len(plan.operators) > 1 or sinks:
        return 0
    widest = max((len(part.tasks) for part in plan.components.values() if not part.kind.is_spout), default=1)
    return min(TaskSettings.of(plan.conf).workers, widest)


def homes_of(plan: PlacedPlan, processes: int) -> dict[int, int]:
    """Returns the live process of each task.

    The tasks of each component are dealt out in turn, from the first process on. So tasks of the same number in their
    components share a process, and components of one task are all in the first one, with the ackers: what they send to
    each other stays there.

    Args:
        plan: of the topology.
        processes: how many there are; the first is 0.
    """
    parts = (part.tasks for part in plan.components.values())
    homes = {task: at % processes for tasks in parts for at, task in enumerate(tasks)}
    return homes | dict.fromkeys(plan.acker_tasks, 0)
