"""Which Spark partition every task lives on, and the key that takes its rows there.

Spark places a row by a hash of its key. Left to chance, the hash would put two tasks on one partition and
none on another; here the partition is chosen first and a key found that hashes to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from storm_on_spark.plan.model import PhysicalPlan

_SEED = 42
"""What Spark seeds the hash with that decides on the partition of a row."""

_MASK = 0xFFFFFFFF


def with_partitions(plan: PhysicalPlan, partitions: int) -> PhysicalPlan:
    """Returns the plan with every task placed on one of `partitions` partitions.

    The tasks of each component, and those of each stage, are spread evenly: no partition has more than one
    more of them than another. Among partitions that are equal in this, the task goes where the fewest tasks
    are in all, so that the acker's end up where there is least to do. Only tasks that get rows of their own
    count as load; fused ones and spouts run where their stage runs, but have a place and a key too.

    Stateful tasks are placed first, by nothing but the other stateful ones. So their places, which a
    checkpoint depends on, stay the same when stateless bolts change.

    Args:
        plan: a plan, placed already or not.
        partitions: how many partitions there are; may not change over the life of a checkpoint.

    Raises:
        ValueError: `partitions` is less than 1.
    """
    if partitions < 1:
        raise ValueError(f"the number of partitions must be at least 1, not {partitions}")
    placement: dict[int, int] = {}
    in_stage: dict[int, Counter[int]] = {stage.index: Counter() for stage in plan.stages}
    in_all: Counter[int] = Counter()
    for stage, tasks, is_load in _groups(plan):
        of_group: Counter[int] = Counter()
        for task in tasks:
            placement[task] = partition = _emptiest(partitions, of_group, in_stage[stage], in_all)
            of_group[partition] += 1
            in_stage[stage][partition] += 1
            in_all[partition] += is_load
    placed = replace(plan, partitions=partitions, placement=dict(sorted(placement.items())))
    keys = dict.fromkeys(placement, 0) if placed.joined else _find_keys(placement, partitions)
    return replace(placed, keys=dict(sorted(keys.items())))


def _emptiest(partitions: int, *counts: Counter[int]) -> int:
    """Returns the partition with the smallest count, the first count deciding, then the second and so on."""
    return min(range(partitions), key=lambda partition: [count[partition] for count in counts])


def _groups(plan: PhysicalPlan) -> Iterator[tuple[int, Sequence[int], bool]]:
    """Yields stage, tasks, and whether they get rows of their own, in the order in which they are placed."""
    components = [plan.components[name] for stage in plan.stages for name in stage.components]
    own_rows = [component for component in components if component.stage > 0 and not component.fused]
    for component in own_rows:
        if not component.stateless:
            yield component.stage, component.tasks, True
    if plan.acker_tasks:
        yield plan.stages[-1].index, plan.acker_tasks, True
    for component in own_rows:
        if component.stateless:
            yield component.stage, component.tasks, True
    for component in components:
        if component not in own_rows:
            yield component.stage, component.tasks, False


def _find_keys(placement: Mapping[int, int], partitions: int) -> dict[int, int]:
    """Returns a key for each task: the smallest integer not taken yet that hashes to its partition."""
    unused: list[list[int]] = [[] for _ in range(partitions)]
    candidate = 0
    keys = {}
    for task, partition in placement.items():
        while not unused[partition]:
            unused[partition_of(candidate, partitions)].append(candidate)
            candidate += 1
        keys[task] = unused[partition].pop(0)
    return keys


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
