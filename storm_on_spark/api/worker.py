"""The objects that a topology's tasks share in one process, and the hooks that start and end with it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

NO_PORT: Final = -1
"""The port of a process that was not started by a supervisor's slot."""

_REFUSED: Final[Mapping[str, str]] = {
    "get_assignment_id": "Spark places bolts again in each micro-batch, so a worker has no assignment",
    "get_task_to_node_port": "Spark places bolts again in each micro-batch, so tasks have no node and port",
    "get_node_to_host": "Spark places bolts again in each micro-batch, so tasks have no node",
    "get_blob_to_last_known_version": "there is no blob store; ship files with the code",
    "get_component_common": "it is a record of Storm's Thrift; `get_raw_topology()[component]` has the same",
    "set_subscribed_state": "state spouts are not supported; Storm has not implemented them either",
    "set_all_subscribed_state": "state spouts are not supported; Storm has not implemented them either",
}
"""Methods of Storm's contexts that have no meaning here, and why."""


class WorkerProcess:
    """The shared objects of all tasks of a topology in one process.

    Args:
        port: the slot's port; `NO_PORT` without a slot.
        pid_dir: this machine's folder for child processes of this start.
        threads: the number of threads of the shared executor.
    """

    def __init__(self, port: int = NO_PORT, pid_dir: str = "", threads: int = 4) -> None:
        self.port = port
        self.pid_dir = pid_dir
        #: The tasks prepared in this process.
        self.tasks: set[int] = set()
        #: Values that `set_resource` stored.
        self.resources: dict[str, Any] = {}
        #: Values that `set_executor_data` stored, by component.
        self.executor_data: dict[str, dict[str, Any]] = {}
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The threads that tasks share; created on first use."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._threads, "storm-shared")
            return self._executor

    def close(self) -> None:
        """Ends the shared threads once they have finished their work."""
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(wait=False, cancel_futures=True)
                self._executor = None


class WorkerTopologyContext:
    """Information and shared objects for tasks and worker hooks in one process."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    @property
    def this_worker_port(self) -> int:
        """The port of the supervisor's slot that runs the topology; -1 outside a cluster."""
        return self._worker.port

    @property
    def this_worker_tasks(self) -> list[int]:
        """The tasks that this process has prepared so far, in ascending order.

        A spout's process keeps its tasks. For bolts, Spark decides in each micro-batch which process executes a task.
        """
        return sorted(self._worker.tasks)

    @property
    def code_dir(self) -> str:
        """The folder `resources` beside the topology's code, as in Storm; the working directory if there is none."""
        for place in (".", *sys.path):
            found = Path(place or ".", "resources")
            if found.is_dir():
                return str(found.absolute())
        return str(Path.cwd())

    @property
    def pid_dir(self) -> str:
        """This machine's folder for the child processes of this start, created on first use; empty in a test."""
        return self._worker.pid_dir

    def get_resource(self, name: str) -> Any:
        """Returns the value that `set_resource` stored in this process, often in a worker hook; None without one."""
        return self._worker.resources.get(name)

    def set_resource(self, name: str, value: Any) -> None:
        """Stores an object for all tasks of the topology in this process, such as a connection pool.

        It is not state: attributes that refer to it are not saved, and refer to the new process's resource after a
        restart.

        Example:
            >>> context = WorkerTopologyContext(WorkerProcess())
            >>> context.set_resource("pool", ["connection"])
            >>> context.get_resource("pool"), context.get_resource("other")
            (['connection'], None)
        """
        self._worker.resources[name] = value

    @property
    def shared_executor(self) -> ThreadPoolExecutor:
        """Threads that all tasks of this process share (`topology.worker.shared.thread.pool.size`).

        Only the executing thread may use a collector: emit the threads' results in a later `execute`.
        """
        return self._worker.executor

    def get_this_worker_port(self) -> int:
        """Returns the port of the supervisor's slot."""
        return self.this_worker_port

    def get_this_worker_tasks(self) -> list[int]:
        """Returns the tasks that this process has prepared so far."""
        return self.this_worker_tasks

    def get_code_dir(self) -> str:
        """Returns the folder `resources` beside the topology's code."""
        return self.code_dir

    def get_pid_dir(self) -> str:
        """Returns this machine's folder for child processes."""
        return self.pid_dir

    def get_shared_executor(self) -> ThreadPoolExecutor:
        """Returns the threads that all tasks of this process share."""
        return self.shared_executor

    def __getattr__(self, name: str) -> Any:
        reason = f": {_REFUSED[name]}" if name in _REFUSED else ""
        raise AttributeError(f"{type(self).__name__} has no {name!r}{reason}")


class WorkerUserContext(WorkerTopologyContext):
    """The context that a worker hook receives.

    Args:
        worker: the process.
        topology_name: the name under which the topology runs.
        storm_id: the id of this run.
        tasks: the task ids of each component.
    """

    def __init__(
        self, worker: WorkerProcess, topology_name: str, storm_id: str, tasks: Mapping[str, tuple[int, ...]]
    ) -> None:
        super().__init__(worker)
        self.topology_name = topology_name
        self.storm_id = storm_id
        self._tasks = {component: sorted(ids) for component, ids in tasks.items()}

    @property
    def component_ids(self) -> list[str]:
        """All components of the topology."""
        return list(self._tasks)

    def get_component_ids(self) -> list[str]:
        """Returns all components of the topology."""
        return self.component_ids

    def get_component_tasks(self, component: str) -> list[int]:
        """Returns the tasks of a component, in ascending order; none for an unknown component."""
        return list(self._tasks.get(component, ()))

    def get_storm_id(self) -> str:
        """Returns the id of this run of the topology."""
        return self.storm_id


class BaseWorkerHook:
    """Code that runs once in each Python process that runs tasks of a topology; override the methods that you need.

    Add it with `TopologyBuilder.add_worker_hook`. `start` is called before any `open` or `prepare` in the process.
    `shutdown` is called when a spout's process ends normally, and when a process of Spark has since run eight other
    topologies. Spark kills its processes, so don't rely on `shutdown` to flush data. An exception in `start` ends the
    topology.

    Example:
        >>> class Pool(BaseWorkerHook):
        ...     def start(self, conf, context):
        ...         context.set_resource("pool", ["connection"])
        >>> context = WorkerUserContext(WorkerProcess(), "words", "words-1", {})
        >>> Pool().start({}, context)
        >>> context.get_resource("pool")
        ['connection']
    """

    def start(self, conf: Mapping[str, Any], context: WorkerUserContext) -> None:
        """Called once in each process.

        Args:
            conf: the topology's configuration.
            context: the process's context; `set_resource` shares objects with the tasks.
        """

    def shutdown(self) -> None:
        """Called when the process has finished with the topology, as far as this is known."""


IWorkerHook = BaseWorkerHook
"""Storm's name for the interface."""
