"""What a Python worker of Spark keeps between micro-batches.

Spark hands a task's next batch to any worker, so everything here is a cache: prepared instances, each with the version
of the state that it holds. The truth is in the state store. The cache lives in this module, because a function that is
pickled from `__main__` gets fresh globals for every batch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.runtime import pickling
from storm_on_spark.runtime.bolt_task import BoltTask
from storm_on_spark.runtime.hooks import hooks_for
from storm_on_spark.runtime.spec import RunSpec, load_spec
from storm_on_spark.runtime.stall import watch_main_thread
from storm_on_spark.runtime.wiring import Wiring

_RUNS_KEPT = 8

_workers: OrderedDict[str, Worker] = OrderedDict()
#: By start id, the least recently used first.


@dataclass
class CachedTask:
    """A prepared instance and the version of the state that it holds."""

    bolt: BoltTask
    version: bytes | None


class Worker:
    """The instances that this process holds for one run."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.wiring = Wiring(spec.plan)
        pickling.register_source(spec.load_all)
        #: Instances between two executions.
        self.tasks: dict[int, CachedTask] = {}

    def context(self, task: int) -> TopologyContext:
        """Returns a new context for `task`, with the hooks of the configuration."""
        plan = self.spec.plan
        conf = self.wiring.conf(self.wiring.component_of[task])
        tasks = {component.id: component.tasks for component in plan.components.values()}
        context = TopologyContext(plan.topology, conf, tasks, task, self.spec.name, self.spec.storm_id)
        for hook in hooks_for(conf):
            context.add_task_hook(hook)
        return context

    def prepare(self, task: int, entries: Iterable[bytes] = ()) -> BoltTask:
        """Returns a newly prepared bolt for `task`.

        Args:
            task: the task.
            entries: its key-value state, if it is a `BaseStatefulBolt`.

        Raises:
            ComponentError: `prepare` raised.
        """
        component = self.wiring.component(task)
        conf = self.wiring.conf(component.id)
        return BoltTask(
            self.wiring,
            self.spec.instance(component.id),
            self.context(task),
            stateless=component.stateless,
            fail_fast=bool(conf.get("topology.fail.fast")),
            entries=entries,
        )


def worker_for(start_id: str, spec: bytes) -> Worker:
    """Returns this process's cache for a run; reads `spec` only when it is new here."""
    worker = _workers.get(start_id)
    if worker is None:
        worker = _workers[start_id] = Worker(load_spec(spec))
        if worker.spec.folder:
            watch_main_thread(float(worker.spec.plan.conf["topology.task.stall.secs"]), Path(worker.spec.folder))  # type: ignore[arg-type]
        while len(_workers) > _RUNS_KEPT:
            _workers.popitem(last=False)
    else:
        _workers.move_to_end(start_id)
    return worker
