"""Passes: which Spark partition every task lives on, and the key that takes its rows there.

Spark places a row by a hash of its key. Left to chance, the hash would put two tasks on one partition and
none on another; here the partition is chosen first and a key found that hashes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from storm_on_spark.plan.live_homes import why_batches
from storm_on_spark.plan.logical import LogicalGraph
from storm_on_spark.plan.settings import TaskSettings

_SEED = 42
"""Spark's seed of the hash that decides the partition of a row."""

_MASK = 0xFFFFFFFF


def partitions_of(graph: LogicalGraph, parallelism: int, session: str = "") -> int:
    """Returns the number of partitions of a topology that starts for the first time.

    It is what `topology.partitions` says; else one where tasks can be live; else one for each core, but no more than
    the widest stage has tasks.

    Args:
        graph: with its stages.
        parallelism: how many cores Spark has.
        session: why tuples wait for micro-batches in the session; "" if nothing there prevents real time.
    """
    asked = TaskSettings.of(graph.conf).partitions
    if asked is not None:
        return asked
    if not session and not why_batches(graph.components, graph.stages, graph.conf):
        return 1
    widths = (sum(len(graph.tasks[component]) for component in stage.components) for stage in graph.stages)
    return max(1, min(parallelism, max(len(graph.acker_tasks), *widths)))


def place_tasks(graph: LogicalGraph) -> LogicalGraph:
    """Places every task on a partition.

    The tasks of each component, and those of each stage, are spread evenly: no partition has more than one
    more of them than another. Among partitions that are equal in this, the task goes where the fewest tasks
    are in all, so that the acker's end up where there is least to do. Only tasks that get rows of their own
    count as load; fused ones and spouts run where their stage runs, but have a place and a key too.

    Stateful tasks are placed first, by nothing but the other stateful ones. So their places, which a
    checkpoint depends on, stay the same when stateless bolts change.
    """
    placement: dict[int, int] = {}
    in_stage: dict[int, Counter[int]] = {stage.index: Counter() for stage in graph.stages}
    in_all: Counter[int] = Counter()
    for stage, tasks, is_load in _groups(graph):
        of_group: Counter[int] = Counter()
        for task in tasks:
            placement[task] = partition = _emptiest(graph.partitions, of_group, in_stage[stage], in_all)
            of_group[partition] += 1
            in_stage[stage][partition] += 1
            in_all[partition] += is_load
    return replace(graph, placement=placement)


def find_keys(graph: LogicalGraph) -> LogicalGraph:
    """Finds for each task the smallest integer not taken yet that Spark hashes to its partition.

    Where nothing is exchanged, all rows have the key 0: Spark calls an operator with state once for each key.
    """
    if not any(operator.exchange for operator in graph.operators):
        return replace(graph, keys=dict.fromkeys(graph.placement, 0))
    unused: list[list[int]] = [[] for _ in range(graph.partitions)]
    candidate = 0
    keys = {}
    # In the order in which tasks were placed, those with state first: a checkpoint depends on their keys.
    for task, partition in graph.placement.items():
        while not unused[partition]:
            unused[partition_of(candidate, graph.partitions)].append(candidate)
            candidate += 1
        keys[task] = unused[partition].pop(0)
    return replace(graph, keys=keys)


def _emptiest(partitions: int, *counts: Counter[int]) -> int:
    """Returns the partition with the smallest count, the first count deciding, then the second and so on."""
    return min(range(partitions), key=lambda partition: [count[partition] for count in counts])


def _groups(graph: LogicalGraph) -> Iterator[tuple[int, Sequence[int], bool]]:
    """Yields stage, tasks, and whether they get rows of their own, in the order in which they are placed."""
    components = [graph.components[name] for stage in graph.stages for name in stage.components]
    own_rows = [component for component in components if component.stage > 0 and not component.fused]
    for component in own_rows:
        if not component.stateless:
            yield component.stage, component.tasks, True
    if graph.acker_tasks:
        yield graph.stages[-1].index, graph.acker_tasks, True
    for component in own_rows:
        if component.stateless:
            yield component.stage, component.tasks, True
    for component in components:
        if component not in own_rows:
            yield component.stage, component.tasks, False


def partition_of(key: int, partitions: int) -> int:
    """Returns the partition on which Spark puts a row by an integer key: `pmod(hash(key), partitions)`.

    Example:
        >>> [partition_of(key, 2) for key in range(4)]
        [1, 1, 0, 1]
    """
    # The remainder is never negative in Python, as Spark's pmod.
    return murmur3(key) % partitions


def murmur3(key: int) -> int:
    """Returns Spark's `hash` of an integer column: Murmur3_x86_32.hashInt, seeded with 42.

    Args:
        key: in the range of a 32-bit integer.

    Returns:
        A signed 32-bit integer.

    Example:
        >>> murmur3(0), murmur3(1)
        (933211791, -559580957)
    """
    mixed = key & _MASK
    mixed = (mixed * 0xCC9E2D51) & _MASK
    mixed = (_rotate(mixed, 15) * 0x1B873593) & _MASK
    mixed = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4  # the length of an integer in bytes
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & _MASK
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & _MASK
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK
