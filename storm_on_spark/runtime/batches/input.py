"""The input of a micro-batch: the chunks between two offsets, and the ticks and timers that have come due.

Chunks in a spout log may have been written before a restart with a topology that was changed since. What could have
changed is that tasks of stateless bolts, and those of the acker, have other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from storm_on_spark.plan.model import StageKind
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Header
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.spouts.log import ACKER, Mark, read_entries
from storm_on_spark.runtime.storage import Folder, inside
from storm_on_spark.runtime.tracking.fold import fold, split_by_acker
from storm_on_spark.runtime.tracking.lineage import contributions, marked


def chunks_between(wiring: Wiring, folder: Folder, start: Offset, end: Offset, partition: int) -> Iterator[Chunk]:
    """Yields the chunks between two offsets whose target lives on `partition`.

    Args:
        wiring: of the plan.
        folder: the topology's own folder in the checkpoint.
        start: where the micro-batch begins.
        end: where it ends.
        partition: which of the plan's.
    """
    for task, position in sorted(end.logs.items()):
        begin = start.logs.get(task, 0)
        if begin < position:
            yield from _logged(wiring, inside(folder, "spouts", str(task)), begin, end.mark(task), partition)
    if end.carried > start.carried:  # to list what is not there takes a round trip, where the folder is in a store
        yield from _carried(wiring, BatchFiles(inside(folder, "carried")), start.carried, end.carried, partition)
    yield from map(chunk.with_header, due_clocks(wiring, start.clock, end.clock, partition))


def carried_between(folder: Folder, start: Offset, end: Offset) -> Iterator[bytes]:
    """Yields the chunks of back edges that a micro-batch takes in, as they were carried; all tasks' are meant."""
    files = BatchFiles(inside(folder, "carried"))
    if end.carried > start.carried:
        for batch in files.batches():
            if start.carried < batch <= end.carried:
                yield from files.read(batch)


def _carried(wiring: Wiring, files: BatchFiles, begin: int, end: int, partition: int) -> Iterator[Chunk]:
    for batch in files.batches():
        if begin < batch <= end:
            for body in files.read(batch):
                header = chunk.read_header(body)
                if wiring.plan.placement[header.target] == partition:
                    own = header._replace(flags=header.flags & ~chunk.CARRIED)
                    yield own, chunk.without_flag(body, chunk.CARRIED)


def _logged(wiring: Wiring, log: Folder, begin: int, end: Mark, partition: int) -> Iterator[Chunk]:
    is_here = _targets(wiring, partition)
    entries = read_entries(log, begin, end.position, is_here, end.epoch)
    yield from logged_chunks(wiring, ((target, body) for _, target, body in entries), partition)


def logged_chunks(wiring: Wiring, entries: Iterable[tuple[int, bytes]], partition: int) -> Iterator[Chunk]:
    """Yields the chunks of entries of a spout log for the tasks on `partition`; arguments as for `chunks_between`."""
    plan = wiring.plan
    ackers, is_here = _acker_targets(wiring), _targets(wiring, partition)
    for target, body in entries:
        if not is_here(target):
            continue
        if target in ackers:
            yield chunk.with_target(body, ackers[target])
        elif wiring.reads(target, (header := chunk.read_header(body)).stream):
            yield header, body
        else:
            yield from map(chunk.with_header, _nobodys(plan.acker_tasks, header, body))


def _acker_targets(wiring: Wiring) -> dict[int, int]:
    return {ACKER - index: task for index, task in enumerate(wiring.plan.acker_tasks)}


def _targets(wiring: Wiring, partition: int) -> Callable[[int], bool]:
    """Returns whether what has a target in a spout log is for `partition`."""
    plan, ackers = wiring.plan, _acker_targets(wiring)
    nobodys_home = plan.placement[plan.acker_tasks[0]] if plan.acker_tasks else None

    def is_here(target: int) -> bool:
        return plan.placement.get(ackers.get(target, target), nobodys_home if target >= 0 else None) == partition

    return is_here


def _nobodys(ackers: tuple[int, ...], header: Header, body: bytes) -> Iterator[bytes]:
    """Tells the ackers of what was for a stateless bolt that is gone, or has other tasks now: its messages time out."""
    lineage, _, receipt = chunk.read_lineage(header, body)
    if lineage is not None:
        roots, edges = contributions(lineage.roots, lineage.edges)
        for task, part in split_by_acker(ackers, fold([marked(roots, 0, xors=edges)])):
            yield chunk.encode_acks(*part, target=task, source=-1, receipts=receipt)


def due_clocks(wiring: Wiring, before: int, now: int, partition: int) -> Iterator[bytes]:
    """Yields the CLOCK chunks between two times of the topology, in ms: of all that is due, and one for each acker."""
    plan = wiring.plan
    due: dict[int, int] = {}
    for flag, periods in ((chunk.TICK, wiring.tick_periods), (chunk.TURN, wiring.turn_periods)):
        for task, period in periods.items():
            if plan.placement[task] == partition and now // period > before // period:
                due[task] = due.get(task, 0) | flag
    for task, timers in wiring.timer_periods.items():
        if plan.placement[task] == partition:
            # Also if no timer is due: the bolt wants the time.
            over = (now // period > before // period for period in timers)
            due[task] = due.get(task, 0) | sum(chunk.TIMER << place for place, is_over in enumerate(over) if is_over)
    for task, flags in due.items():
        yield chunk.encode_clock(now, flags, target=task)
    if plan.stages[-1].kind is StageKind.ACKER:
        for task in plan.acker_tasks:
            if plan.placement[task] == partition:
                yield chunk.encode_clock(now, 0, target=task)
