"""The cache that a Python worker of Spark keeps between micro-batches.

Spark hands a task's next batch to any worker, so everything here is a cache: prepared instances, each with the version
of the state that it holds. The state store is authoritative. The cache lives in this module, because a function that is
pickled from `__main__` gets fresh globals for every batch.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from storm_on_spark.runtime.bolts.bolt_task import BoltTask, Kept
from storm_on_spark.runtime.bolts.watching.stall import MainThreadWatch
from storm_on_spark.runtime.run.run import Run
from storm_on_spark.runtime.run.settings import BoltSettings, ReportSettings
from storm_on_spark.runtime.run.spec import RunSpec, load_spec
from storm_on_spark.runtime.run.worker_process import local_folder, release
from storm_on_spark.runtime.values import pickling

_RUNS_KEPT = 8

workers: OrderedDict[str, Worker] = OrderedDict()
#: By start id, the least recently used first.


@dataclass
class CachedTask:
    """A prepared instance and the version of the state that it holds."""

    bolt: BoltTask
    version: bytes | None
    unsaved: bool = False
    """Whether it has executed since, and its state is only here."""


class Worker(Run):
    """The instances that this process holds for one run."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        #: The topology's own folder in the checkpoint.
        self.folder = spec.open_folder()
        #: Instances between two executions.
        self.tasks: dict[int, CachedTask] = {}
        #: What names of the user's script mean to the run.
        self.namespace = pickling.Namespace()
        #: Called when this process keeps nothing of the run any more.
        self.watch: MainThreadWatch | None = None

    def prepare(self, task: int, kept: Kept | None = None) -> BoltTask:
        """Returns a newly prepared bolt for `task`.

        Args:
            task: the task.
            kept: its state as of the last commit; needed only if it is a `BaseStatefulBolt`.

        Raises:
            ComponentError: `prepare` raised.
        """
        component = self.wiring.component(task)
        return BoltTask(
            self.wiring,
            self.spec.instance(component.id),
            self.context(task),
            stateless=component.stateless,
            fail_fast=self.wiring.settings(BoltSettings, component.id).fail_fast,
            kept=kept,
            sampler=self.sampler,
        )


def worker_for(start_id: str, spec: bytes) -> Worker:
    """Returns this process's cache for a run, which it executes next; reads `spec` only when it is new here."""
    worker = workers.get(start_id)
    if worker is None:
        namespace = pickling.Namespace()
        pickling.enter(namespace)
        worker = workers[start_id] = Worker(load_spec(spec))
        worker.namespace = namespace
        if worker.folder is not None:
            limit = worker.wiring.settings(ReportSettings).stall_secs
            worker.watch = MainThreadWatch(limit, worker.wiring, worker.folder, local_folder(worker.spec))
        while len(workers) > _RUNS_KEPT:
            oldest, forgotten = workers.popitem(last=False)
            if forgotten.watch is not None:
                forgotten.watch.close()
            release(oldest)
    else:
        workers.move_to_end(start_id)
        pickling.enter(worker.namespace)
    if worker.watch is not None:
        worker.watch.enter()
    return worker
