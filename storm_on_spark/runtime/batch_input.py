"""The input of a micro-batch: the chunks between two offsets.

Chunks in a spout log may have been written before a restart with a topology that was changed since. What could have
changed is that tasks of stateless bolts, and those of the acker, have other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.plan.model import StageKind
from storm_on_spark.runtime import chunk
from storm_on_spark.runtime.batch_files import BatchFiles
from storm_on_spark.runtime.fold import fold
from storm_on_spark.runtime.lineage import contributions, marked
from storm_on_spark.runtime.offsets import Offset
from storm_on_spark.runtime.spout_log import ACKER, read_entries
from storm_on_spark.runtime.stage import split_by_acker
from storm_on_spark.runtime.wiring import Wiring


def chunks_between(wiring: Wiring, folder: Path, start: Offset, end: Offset, partition: int) -> Iterator[bytes]:
    """Yields the chunks between two offsets whose target lives on `partition`.

    Args:
        wiring: of a plan with partitions.
        folder: the topology's own folder in the checkpoint.
        start: where the micro-batch begins.
        end: where it ends.
        partition: which of the plan's.
    """
    placement = wiring.plan.placement
    for task, position in sorted(end.logs.items()):
        begin = start.logs.get(task, 0)
        if begin < position:
            yield from _logged(wiring, folder / "spouts" / str(task), begin, position, partition)
    carried = BatchFiles(folder / "carried")
    for batch in carried.batches():
        if start.carried < batch <= end.carried:
            for body in carried.read(batch):
                if placement[chunk.read_header(body).target] == partition:
                    yield chunk.without_flag(body, chunk.CARRIED)
    yield from _clocks(wiring, start.clock, end.clock, partition)


def _logged(wiring: Wiring, log: Path, begin: int, end: int, partition: int) -> Iterator[bytes]:
    plan = wiring.plan
    ackers = {ACKER - index: task for index, task in enumerate(plan.acker_tasks)}
    nobodys_home = plan.placement[plan.acker_tasks[0]] if plan.acker_tasks else None

    def is_here(target: int) -> bool:
        return plan.placement.get(ackers.get(target, target), nobodys_home if target >= 0 else None) == partition

    for _, target, body in read_entries(log, begin, end, is_here):
        if target in ackers:
            yield chunk.with_target(body, ackers[target])
        elif wiring.reads(target, chunk.read_header(body).stream):
            yield body
        else:
            yield from _nobodys(plan.acker_tasks, body)


def _nobodys(ackers: tuple[int, ...], body: bytes) -> Iterator[bytes]:
    """Tells the ackers of what was for a stateless bolt that is gone, or has other tasks now: its messages time out."""
    header = chunk.read_header(body)
    lineage, _ = chunk.read_lineage(header, body)
    if lineage is not None:
        roots, edges = contributions(lineage.roots, lineage.edges)
        for task, part in split_by_acker(ackers, fold([marked(roots, 0, xors=edges)])):
            yield chunk.encode_acks(*part, target=task, source=-1, receipts=chunk.receipt(header, body))


def _clocks(wiring: Wiring, before: int, now: int, partition: int) -> Iterator[bytes]:
    plan = wiring.plan
    for task, period in wiring.tick_periods().items():
        if plan.placement[task] == partition and now // period > before // period:
            yield chunk.encode_clock(now, True, target=task)
    if plan.stages[-1].kind is StageKind.ACKER:
        for task in plan.acker_tasks:
            if plan.placement[task] == partition:
                yield chunk.encode_clock(now, False, target=task)
