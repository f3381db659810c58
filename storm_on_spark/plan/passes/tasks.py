"""Pass: assigns task ids to components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.topology import ComponentKind, ComponentSpec
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.settings import TaskSettings


def assign_tasks(graph: LogicalGraph) -> LogicalGraph:
    """Turns parallelism hints into task ids.

    Ids count from 1, components in the order of their ids, and the acker's tasks come last. A component has
    as many tasks as `set_num_tasks` or `topology.tasks` says, by default as many as executors, and never more
    than `topology.max.task.parallelism`. There are `topology.acker.executors` acker tasks; `None` means one
    per worker and 0 that nothing is tracked. A native spout has one task, which keeps what failed: how parallel its
    rows are read is its source's business.

    Raises:
        InvalidTopologyError: there are more tasks than the messages of native spouts can name.
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
        if spec.kind is ComponentKind.NATIVE_SPOUT and first > _MOST_BEFORE_NATIVE:
            raise InvalidTopologyError(
                f'spout "{component}": its task must be below {_MOST_BEFORE_NATIVE}, and is {first - 1}; tasks are '
                "numbered in the order of the names of their components",
                component=component,
            )
    settings = TaskSettings.of(effective_conf(graph.conf))
    ackers = settings.workers if settings.ackers is None else settings.ackers
    return replace(graph, tasks=tasks, executors=executors, acker_tasks=tuple(range(first, first + ackers)))


_MOST_BEFORE_NATIVE = 1 << 11
"""The message of a row that Spark reads has room for a task below this."""


def _task_count(spec: ComponentSpec, conf: Mapping[str, object]) -> int:
    if spec.kind is ComponentKind.NATIVE_SPOUT:
        return 1
    settings = TaskSettings.of(effective_conf(conf, spec.conf))
    count = spec.num_tasks or settings.tasks or spec.parallelism
    return count if settings.max_parallelism is None else min(count, settings.max_parallelism)
