"""A micro-batch without Spark: all operators of a plan, in order, over all partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from storm_on_spark.plan.model import Operator, PlacedPlan
from storm_on_spark.plan.passes.placement import partition_of
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk


def execute_plan(
    plan: PlacedPlan,
    batch: int,
    read: Callable[[int], Iterable[Chunk]],
    execute: Callable[[Operator, list[Chunk], BatchInfo], Iterable[Row]],
    exchanged: Callable[[list[Row]], list[Row]] = list,
) -> list[Row]:
    """Returns the rows that the last operator gives the sink.

    Args:
        plan: with its partitions.
        batch: the micro-batch's number.
        read: returns the chunks of the spout logs for a partition.
        execute: what a Spark task does with an operator: chunks of one partition, or of one key, in; rows out.
        exchanged: what an exchange brings of all rows.
    """
    rows: list[Row] = []
    for operator in plan.operators:
        arrived = exchanged(rows) if operator.exchange else rows
        rows = []
        for partition in range(plan.partitions):
            info = BatchInfo(batch, partition)
            if operator.source is not None:
                rows += execute(operator, list(read(partition)), info)
                continue
            here = [row for row in arrived if partition_of(row[0], plan.partitions) == partition]
            for bodies in _by_key(here) if operator.state else [[body for _, body in here]]:
                rows += execute(operator, [chunk.with_header(body) for body in bodies], info)
    return rows


def _by_key(rows: list[Row]) -> Iterator[list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for key, body in rows:
        found.setdefault(key, []).append(body)
    return (found[key] for key in sorted(found))
