"""Pass: assigns task ids to components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.topology import ComponentSpec
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.settings import TaskSettings


def assign_tasks(graph: LogicalGraph) -> LogicalGraph:
    """Turns parallelism hints into task ids.

    Ids count from 1, components in the order of their ids, and the acker's tasks come last. A component has
    as many tasks as `set_num_tasks` or `topology.tasks` says, by default as many as executors, and never more
    than `topology.max.task.parallelism`. There are `topology.acker.executors` acker tasks; `None` means one
    per worker and 0 that nothing is tracked.
    """
    tasks: dict[str, tuple[int, ...]] = {}
    executors: dict[str, int] = {}
    first = 1
    for component in sorted(graph.topology.components):
        spec = graph.topology[component]
        count = _task_count(spec, graph.conf)
        tasks[component] = tuple(range(first, first + count))
        executors[component] = min(spec.parallelism, count)
        first += count
    settings = TaskSettings.of(effective_conf(graph.conf))
    ackers = settings.workers if settings.ackers is None else settings.ackers
    return replace(graph, tasks=tasks, executors=executors, acker_tasks=tuple(range(first, first + ackers)))


def _task_count(spec: ComponentSpec, conf: Mapping[str, object]) -> int:
    settings = TaskSettings.of(effective_conf(conf, spec.conf))
    count = spec.num_tasks or settings.tasks or spec.parallelism
    return count if settings.max_parallelism is None else min(count, settings.max_parallelism)
