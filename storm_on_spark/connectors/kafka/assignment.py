"""Which task of a spout reads which partition."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from storm_on_spark.connectors.kafka.offsets import Partition


def task_of(partition: Partition, tasks: int) -> int:
    """Returns the index of the task that reads a partition.

    It depends on the partition alone: a task's state has the partition's offsets, so partitions that are added must not
    move others. The partitions of one topic are dealt out evenly.

    Example:
        >>> sorted(task_of(("lines", number), 2) for number in range(4))
        [0, 0, 1, 1]
    """
    topic, number = partition
    return (crc32(topic.encode("utf-8")) + number) % tasks


def assigned(partitions: Iterable[Partition], task_index: int, tasks: int) -> list[Partition]:
    """Returns those of the partitions that a task reads, in order."""
    return sorted(partition for partition in partitions if task_of(partition, tasks) == task_index)
