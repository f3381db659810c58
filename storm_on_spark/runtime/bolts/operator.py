"""Executing an operator: chunks in, rows out.

It is the same for all operators; they differ in what brings the chunks (`storm_on_spark.spark`), how many stages there
are, and whether there is state. Within an operator, chunks go from stage to stage in this process, as bytes, as they do
between operators: what a bolt does to a value is not seen in another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from storm_on_spark.plan.model import Operator, Stage, StageKind
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import BatchInfo, Passed, Row, bytes_of, execute_acker, execute_bolts
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk

Waiting = dict[int, list[Passed]]
"""The chunks for a stage, by task."""


def execute_operator(
    worker: Worker,
    operator: Operator,
    chunks: Iterable[Chunk],
    info: BatchInfo,
    state_of: Callable[[int], StateAccess] | None = None,
) -> Iterator[Row]:
    """Yields the output of an operator: rows for the sink and for operators that come later.

    Args:
        worker: this process's instances.
        operator: of the worker's plan.
        chunks: those of one partition; of an operator with state, those of one key.
        info: which batch and partition.
        state_of: gives the state of a task; not needed by an operator without state.
    """
    keys, system_key = worker.spec.plan.keys, worker.wiring.system_key
    for header, body in through_stages(
        worker, operator, chunks, lambda stage, by_task: execute_stage(worker, stage, by_task, info, state_of)
    ):
        yield system_key if chunk.is_for_sink(header) else keys[header.target], bytes_of(body)


def through_stages(
    worker: Worker,
    operator: Operator,
    chunks: Iterable[Chunk],
    executions: Callable[[Stage, Waiting], Iterator[Iterable[Passed]]],
) -> Iterator[Passed]:
    """Yields the output of an operator whose stages are executed in any way.

    Args:
        worker: of the run.
        operator: of the worker's plan.
        chunks: those that come in.
        executions: yields what each execution of a stage emits for the chunks of its tasks, which it takes out.
    """
    wiring = worker.wiring
    waiting: dict[int | None, Waiting] = {stage.index: defaultdict(list) for stage in operator.stages}

    def sorted_out(found: Iterable[Passed]) -> Iterator[Passed]:
        """Keeps chunks for a later stage; yields those that leave the operator."""
        for passed in found:
            header, _ = passed
            if not chunk.is_for_sink(header) and (stage := wiring.stage_of_task(header.target)) in waiting:
                waiting[stage][header.target].append(passed)
            else:
                yield passed

    yield from sorted_out(chunks)
    for stage in operator.stages:
        for outgoing in executions(stage, waiting.pop(stage.index)):
            yield from sorted_out(outgoing)


def execute_stage(
    worker: Worker, stage: Stage, by_task: Waiting, info: BatchInfo, state_of: Callable[[int], StateAccess] | None
) -> Iterator[Iterator[Passed]]:
    """Yields what each execution of a stage emits: one of all its tasks, or one for each where they have state."""
    if stage.kind in (StageKind.SOURCE, StageKind.STATELESS):
        if by_task:
            yield execute_bolts(worker, stage, by_task, info)
        return
    assert state_of is not None, f"stage {stage.index} has state"
    for task in sorted(by_task):
        chunks = by_task.pop(task)
        if stage.kind is StageKind.ACKER:
            yield execute_acker(worker.wiring, task, chunks, state_of(task), info)
        else:
            yield execute_bolts(worker, stage, {task: chunks}, info, state_of(task))
