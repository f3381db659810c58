"""What the tasks of a run share in this process: made, with the topology's worker hooks, before the first task."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.worker import BaseWorkerHook, WorkerProcess, WorkerUserContext
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.runtime.run.settings import WorkerSettings
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.values import pickling

log = logging.getLogger(__name__)

_lock = threading.RLock()
_processes: WeakValueDictionary[str, HookedProcess] = WeakValueDictionary()
#: By start id, as long as a run is there.


class HookedProcess(WorkerProcess):
    """A process with the worker hooks that have started."""

    started: list[BaseWorkerHook]

    def shut_down(self) -> None:
        """Calls `shutdown` of the hooks, once, the last first; an error is logged."""
        hooks, self.started = self.started, []
        for hook in reversed(hooks):
            try:
                hook.shutdown()
            except Exception:  # whatever it is, the others have their turn
                log.warning("worker hook %s failed in shutdown", type(hook).__qualname__, exc_info=True)
        self.close()


def worker_process(spec: RunSpec) -> HookedProcess:
    """Returns what the run's tasks share in this process; the hooks have started.

    Raises:
        ComponentError: a hook's `start` raised.
    """
    with _lock:
        found = _processes.get(spec.start_id)
        if found is None:
            conf: Mapping[str, Any] = spec.plan.conf
            found = HookedProcess(spec.port, str(local_folder(spec)), WorkerSettings.of(conf).threads)
            found.started = []
            _start_hooks(found, spec, conf)
            _processes[spec.start_id] = found
        return found


def local_folder(spec: RunSpec) -> Path:
    """Returns the run's folder on this machine; it may not exist."""
    folder = Path(spec.local_folder)
    # Another machine may have its temporary files in another place.
    return folder if folder.name and folder.parent.is_dir() else run_folder(spec.start_id)


def _start_hooks(process: HookedProcess, spec: RunSpec, conf: Mapping[str, Any]) -> None:
    tasks = {component.id: component.tasks for component in spec.plan.components.values()}
    context = WorkerUserContext(process, spec.name, spec.storm_id, tasks)
    for data in spec.worker_hooks:
        name = "of a worker"
        try:
            hook = pickle.loads(data)
            name = type(hook).__qualname__
            pickling.register_component(hook)
            hook.start(conf, context)
        except Exception as error:  # whatever user code raises
            process.shut_down()
            raise ComponentError.of(f"worker hook {name}", None, "start", error) from error
        process.started.append(hook)


def release(start_id: str) -> None:
    """Ends the hooks of a run that this process is done with."""
    with _lock:
        found = _processes.pop(start_id, None)
    if found is not None:
        found.shut_down()
