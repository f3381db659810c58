"""Opens a spout's task, in a spout host or any other process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.topology import ComponentKind
from storm_on_spark.runtime.run.run import Run
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.spouts.batch_spout_task import BatchSpoutTask
from storm_on_spark.runtime.spouts.log import Mark, WriterEpoch
from storm_on_spark.runtime.spouts.messages import Message, Setup
from storm_on_spark.runtime.spouts.native.task import NativeSpoutTask
from storm_on_spark.runtime.spouts.pacing import Pace
from storm_on_spark.runtime.spouts.spout_task import SpoutTask
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.storage import Folder, inside

_KINDS: dict[ComponentKind, type[SpoutTask]] = {
    ComponentKind.BATCH_SPOUT: BatchSpoutTask,
    ComponentKind.NATIVE_SPOUT: NativeSpoutTask,
}


def open_loop(
    run: Run,
    setup: Setup,
    task: int,
    clock: Callable[[], int],
    send: Callable[[Message], None],
    pace: Pace = Pace(),  # noqa: B008 # it is immutable
) -> TaskLoop:
    """Opens a task's spout and log; arguments and errors are those of `TaskLoop` and `SpoutTask`."""
    # If the checkpoint is in a store, the specification says how to connect to it.
    place = run.spec.place
    logs: Folder = Path(setup.folder) if place is None else inside(place.open(), "spouts")
    spout = open_spout_task(
        run.spec,
        run.wiring,
        run.context(task),
        inside(logs, str(task)),
        clock,
        epoch=setup.epoch,
        planned=setup.planned[task],
    )
    spout.sampler = run.sampler
    settings = run.wiring.settings(SpoutSettings, spout.component)
    return TaskLoop(spout, settings, send, setup.consumed[task], pace)


def open_spout_task(
    spec: RunSpec,
    wiring: Wiring,
    context: TopologyContext,
    folder: Folder,
    clock: Callable[[], int],
    now: Callable[[], float] = time.monotonic,
    *,
    epoch: WriterEpoch | None = None,
    planned: Mark = Mark(),  # noqa: B008 # it is immutable
) -> SpoutTask:
    """Opens a task of a spout of any kind; arguments and errors are those of `SpoutTask`."""
    kind = _KINDS.get(wiring.component(context.this_task_id).kind, SpoutTask)
    return kind(spec, wiring, context, folder, clock, now, epoch=epoch, planned=planned)
