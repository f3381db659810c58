"""The run of a process."""

from __future__ import annotations

from pathlib import Path

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.runtime.run.hooks import hooks_for
from storm_on_spark.runtime.run.settings import HookSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.run.wiring import Wiring
from storm_on_spark.runtime.values import pickling


class Run:
    """A run's specification and tables; what is pickled from here on finds the topology's classes in it."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.wiring = Wiring(spec.plan)
        pickling.register_source(spec.load_all)

    def context(self, task: int) -> TopologyContext:
        """Returns a new context for `task`, with the hooks of the configuration."""
        plan = self.spec.plan
        own = self.wiring.component_of[task]
        conf = self.wiring.conf(own)
        tasks = {component.id: component.tasks for component in plan.components.values()}
        folder = self.spec.local_folder
        if not Path(folder).parent.is_dir():  # another machine, with its temporary files in another place
            folder = str(run_folder(self.spec.start_id))
        context = TopologyContext(plan.topology, conf, tasks, task, self.spec.name, self.spec.storm_id, folder)
        for hook in hooks_for(self.wiring.settings(HookSettings, own)):
            context.add_task_hook(hook)
        return context
