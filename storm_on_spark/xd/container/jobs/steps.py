"""The steps of a container: the leader's requests below `allocated`, and the reports there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.container.jobs.orders import StepOrder
from storm_on_spark.xd.container.jobs.process import StepProcess
from storm_on_spark.xd.dsl import parse_job
from storm_on_spark.xd.modules.local_registry import LocalRegistry, ModuleRegistryError
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.jobs import REPORT, RUN, ExecutionNode, ReportNode, RunNode, execution_path, step_path
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import ModuleName

logger = logging.getLogger(__name__)

_LEASE: Final = 0.4
"""Part of a session's time-out: the session of a container that is paused ends after its steps."""

Run = tuple[ModuleName, int]
"""The instance, and the execution."""


class Steps:
    """Runs the steps of one container. All methods except `_on_report` are called by one thread.

    Args:
        container: its id.
        tree: in ZooKeeper, over the session of the container.
        registry: the modules.
        folder: of the logs.
        wake: makes the container check again.
    """

    def __init__(
        self,
        container: str,
        tree: Tree,
        registry: LocalRegistry,
        folder: Path,
        wake: Callable[[], None],
    ) -> None:
        self._container = container
        self._tree, self._session = tree, tree.session
        self._session_id = self._session.session_id
        self._lease = self._session.negotiated_timeout * _LEASE
        self._registry = registry
        self._folder = folder
        self._wake = wake
        #: Includes ended steps while their order exists.
        self._runs: dict[Run, StepProcess] = {}
        self._lock = threading.Lock()
        #: Pending reports, in order.
        self._news: list[tuple[Run, ReportNode]] = []

    def look(self, mirror: Mirror, modules: Mapping[ModuleName, object]) -> None:
        """Starts and ends steps as requested.

        Args:
            mirror: of what is allocated to the container.
            modules: the instances that are allocated.

        Raises:
            ClusterError: ZooKeeper is unavailable. The next check does the rest.
        """
        wanted: dict[Run, RunNode] = {}
        for name in modules:
            if name.kind != "job":
                continue
            path = f"{nodes.ALLOCATED}/{self._container}/{name}"
            for child in mirror.children(path):
                number = child.removeprefix(RUN)
                node = mirror.value(f"{path}/{child}", RunNode) if child.startswith(RUN) else None
                if node is not None and number.isdecimal():
                    wanted[name, int(number)] = node
        # Only a connected session proves that it is alive.
        self._session.proving = bool(wanted)
        for run in [run for run in self._runs if run not in wanted]:
            self._runs.pop(run).end("STOPPED", "it is not this container's any more")
        for run, node in wanted.items():
            if run not in self._runs and (made := self._made(run)) is not None:
                self._runs[run] = made
                logger.info("Running step %s of job %s, execution %d", run[0].label, run[0].stream, run[1])
                made.start()
            if node.stopping and run in self._runs:
                self._runs[run].end("STOPPED", "it was stopped")

    def tell(self) -> None:
        """Sends the pending reports.

        Raises:
            ClusterError: ZooKeeper is unavailable. The next check reports it.
        """
        while True:
            with self._lock:
                if not self._news:
                    return
                run, report = self._news[0]
            self._report(run, report)
            with self._lock:
                self._news.pop(0)

    def signal(self) -> None:
        """Requests the end of all steps: the session is lost, so their results don't count."""
        # The callback runs on another thread.
        for process in list(self._runs.values()):
            process.end("FAILED", "its container has lost its session")

    def close(self) -> None:
        """Ends all steps, and reports their end."""
        for process in self._runs.values():
            process.end("FAILED", "its container was ended")
        for process in self._runs.values():
            process.join()
        try:
            self.tell()
        except ClusterError as error:
            logger.warning("Container %s can't report what became of its steps: %r", self._container, error)

    def _made(self, run: Run) -> StepProcess | None:
        name, number = run
        path = execution_path(number)
        execution = self._tree.read(ExecutionNode, path)
        if execution is None:
            return None
        order = StepOrder(
            job=name.stream,
            step=name.label,
            execution=number,
            definition=execution.definition,
            parameters=execution.parameters,
            modules=self._uploaded(name.stream, execution.definition),
            lease=self._lease,
        )
        log = self._folder / f"{number:010}" / f"{name.stream}.{name.label}.log"
        return StepProcess(order, log, self._lives, lambda report: self._on_report(run, report))

    def _uploaded(self, job: str, definition: str) -> dict[str, str]:
        """Returns name -> SHA-256 of the job's modules that were uploaded."""
        found: dict[str, str] = {}
        for name in {module.name for module in parse_job(definition, job).modules}:
            try:
                sha256 = self._registry.sha256("job", name)
            except ModuleRegistryError as error:
                # The step's process reports that it is missing.
                logger.error("Job %s: %s", job, error)
                continue
            if sha256 is not None:
                found[name] = sha256
        return found

    def _lives(self) -> bool:
        return self._session_id is not None and self._session.lives(self._session_id, self._lease)

    def _on_report(self, run: Run, report: ReportNode) -> None:
        with self._lock:
            self._news.append((run, report))
        self._wake()

    def _report(self, run: Run, report: ReportNode) -> None:
        path = f"{step_path(self._container, run[0].stream, run[0].label)}/{REPORT}{run[1]}"
        if not self._tree.put(report, path):
            logger.warning("Step %s: it is not this container's any more", run[0])
            if run in self._runs:
                self._runs[run].end("STOPPED", "it is not this container's any more")
