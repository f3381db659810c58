"""Pass: which tasks every component has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from storm_on_spark.api.config import Config, effective_conf
from storm_on_spark.api.topology import ComponentSpec
from storm_on_spark.plan.logical import LogicalGraph


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
    conf = effective_conf(graph.conf)
    ackers = _number(conf, Config.TOPOLOGY_ACKER_EXECUTORS)
    if ackers is None:
        ackers = _number(conf, Config.TOPOLOGY_WORKERS) or 1
    return replace(graph, tasks=tasks, executors=executors, acker_tasks=tuple(range(first, first + ackers)))


def _task_count(spec: ComponentSpec, conf: Mapping[str, object]) -> int:
    merged = effective_conf(conf, spec.conf)
    count = spec.num_tasks or _number(merged, Config.TOPOLOGY_TASKS) or spec.parallelism
    limit = _number(merged, Config.TOPOLOGY_MAX_TASK_PARALLELISM)
    return count if limit is None else min(count, limit)


def _number(conf: Mapping[str, object], key: str) -> int | None:
    value = conf[key]
    # Configuration is validated before it gets here; a wrong type is a bug of the caller.
    assert value is None or isinstance(value, int), f"{key} must be a whole number, not {value!r}"
    return value
