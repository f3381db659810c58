"""Executing the stages of one Spark operator with state.

An operator executes one stage, or, with one partition, all of them: then chunks go from stage to stage in this process
as they would through Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from storm_on_spark.plan.model import Stage, StageKind
from storm_on_spark.runtime import chunk
from storm_on_spark.runtime.stage import BatchInfo, Row, StateAccess, execute_ackers, execute_stage, is_for_sink
from storm_on_spark.runtime.worker import Worker


def execute_stages(
    worker: Worker,
    stages: Sequence[Stage],
    bodies: Iterable[bytes],
    info: BatchInfo,
    state_of: Callable[[int], StateAccess],
) -> Iterator[Row]:
    """Yields what stages make of the chunks that reached the first of them, or a later one.

    Args:
        worker: this process's instances.
        stages: one or several, in their order.
        bodies: the chunks of one task, or, with all stages, of all tasks.
        info: which batch and partition.
        state_of: gives the state of a task.
    """
    plan, wiring = worker.spec.plan, worker.wiring
    waiting: dict[int, defaultdict[int, list[bytes]]] = {stage.index: defaultdict(list) for stage in stages}

    def sort_out(bodies: Iterable[bytes]) -> Iterator[Row]:
        """Keeps chunks for their stages and tasks; yields those that leave."""
        for body in bodies:
            header = chunk.read_header(body)
            if is_for_sink(header):
                yield wiring.system_key, body
            elif (stage := wiring.stage_of_task(header.target)) in waiting:
                waiting[stage][header.target].append(body)
            else:
                yield plan.keys[header.target], body

    yield from sort_out(bodies)
    for stage in stages:
        by_task = waiting.pop(stage.index)
        if stage.kind in (StageKind.SOURCE, StageKind.STATELESS):
            rows = execute_stage(worker, stage, chain.from_iterable(by_task.values()), info, None)
            yield from sort_out(body for _, body in rows)
            continue
        for task in sorted(by_task):
            if stage.kind is StageKind.ACKER:
                rows = execute_ackers(wiring, by_task[task], state_of(task))
            else:
                rows = execute_stage(worker, stage, by_task[task], info, state_of(task))
            yield from sort_out(body for _, body in rows)
