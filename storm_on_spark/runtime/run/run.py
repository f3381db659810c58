"""The run of a process."""

from __future__ import annotations

from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.runtime.run.hooks import hooks_for
from storm_on_spark.runtime.run.settings import HookSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.run.worker_process import HookedProcess, worker_process
from storm_on_spark.runtime.samples.sampler import Sampler
from storm_on_spark.runtime.values import pickling


class Run:
    """A run's specification and tables; what is pickled from here on finds the topology's classes in it."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.wiring = Wiring(spec.plan)
        pickling.register_source(spec.load_all)
        self.sampler = Sampler(spec.open_folder)
        #: What the tasks of this process share, from the first of them on.
        self._process: HookedProcess | None = None

    def context(self, task: int) -> TopologyContext:
        """Returns a new context for `task`, with the hooks of the configuration.

        Raises:
            ComponentError: a worker hook's `start` raised; this is the first task here.
        """
        plan = self.spec.plan
        own = self.wiring.component_of[task]
        conf = self.wiring.conf(own)
        tasks = {component.id: component.tasks for component in plan.components.values()}
        if self._process is None:
            self._process = worker_process(self.spec)
        spec = self.spec
        context = TopologyContext(plan.topology, conf, tasks, task, spec.name, spec.storm_id, worker=self._process)
        for hook in hooks_for(self.wiring.settings(HookSettings, own)):
            context.add_task_hook(hook)
        return context
