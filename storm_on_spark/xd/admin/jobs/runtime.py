"""The jobs that are deployed, and their executions, for REST: any admin answers from its copy."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from storm_on_spark.cluster.errors import NotFoundError, NotOfferedError, RecordError, TransitionError, UnavailableError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.jobs.executions import restartable
from storm_on_spark.xd.admin.rest.schemas import ExecutionView, StepView
from storm_on_spark.xd.admin.runtime import ClusterRuntime, checked_manifest
from storm_on_spark.xd.dsl import parse_job
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.steps import ParameterError, check_steps
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.jobs import ENDED, ExecutionNode, execution_path
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import EXECUTIONS, Kind, Order

_SHOWN_SECS: Final = 10.0
"""How long the copy may lag behind what the leader has written."""
_STOP_SECS: Final = 30.0


class ClusterJobRuntime(ClusterRuntime):
    """The runtime of jobs; see `core.JobRuntime`.

    Args:
        tree: in ZooKeeper.
        mirror: the copy of the tree.
        changed: notified after every change of the copy.
        registry: the modules.
    """

    kind: ClassVar[Kind] = "job"

    def __init__(self, tree: Tree, mirror: Mirror, changed: threading.Condition, registry: LocalRegistry) -> None:
        super().__init__(tree, mirror, changed)
        self._registry = registry

    def check(self, name: str, definition: str, properties: Mapping[str, str], *, fused: bool) -> None:
        """See `ClusterRuntime`. Of the properties, a step can have only criteria."""
        if fused:
            raise RecordError("Expected a stream for --fused: a job has steps, not messages")
        for label, each in checked_manifest(
            properties, [module.label for module in parse_job(definition, name).modules]
        ).items():
            if each.count != 1:
                raise RecordError(f"module.{label}.count: expected 1, as a step runs once, got {each.count}")
            if each.partition_key is not None or each.track_history:
                raise NotOfferedError(f"module.{label}: a step has no messages, so only criteria make sense")

    def launch(self, name: str, parameters: Mapping[str, str]) -> ExecutionView:
        """See `core.JobRuntime`."""
        definition = self.definition(name)
        try:
            check_steps(parse_job(definition, name), definition, self._registry, parameters)
        except ParameterError as error:
            raise RecordError(str(error)) from error
        self._check_free(name)
        number = self._order(Order(action="launch", stream=name, properties=dict(parameters), kind="job")) + 1
        return self._launched(number, name, "launched")

    def executions(self) -> Sequence[ExecutionView]:
        """See `core.JobRuntime`."""
        numbers = sorted((int(name) for name in self._mirror.children(EXECUTIONS) if name.isdecimal()), reverse=True)
        found = ((number, self._mirror.value(execution_path(number), ExecutionNode)) for number in numbers)
        return [self._view(number, node) for number, node in found if node is not None]

    def execution(self, number: int) -> ExecutionView:
        """See `core.JobRuntime`."""
        return self._view(number, self._found(number))

    def stop(self, number: int) -> ExecutionView:
        """See `core.JobRuntime`."""
        found = self._stored(number)
        if found.status in ENDED:
            raise TransitionError(f"Execution {number} of job '{found.job}' has ended already: {found.status}")
        self._order(Order(action="stop", stream=found.job, kind="job", execution=number))
        if not self._wait(lambda: self._found(number).status in ENDED, _STOP_SECS):
            raise UnavailableError(
                f"The steps of execution {number} have not ended within {_STOP_SECS:g} s; they are still ending"
            )
        return self.execution(number)

    def restart(self, number: int) -> ExecutionView:
        """See `core.JobRuntime`."""
        found = self._stored(number)
        what = f"Execution {number} of job '{found.job}'"
        if found.restarted_by:
            raise TransitionError(f"{what} was restarted already, as execution {found.restarted_by}")
        if not restartable(found):
            raise TransitionError(f"{what} can't be restarted: it is {found.status}")
        self._check_free(found.job)
        if self.definition(found.job) != found.definition:
            raise TransitionError(f"{what} can't be restarted: the job has another definition now")
        asked = self._order(Order(action="restart", stream=found.job, kind="job", execution=number))
        return self._launched(asked + 1, found.job, "restarted")

    def _check_free(self, name: str) -> None:
        if self.deployment(name) is None and not self._is_stored(name):
            raise TransitionError(f"The job named '{name}' is not currently deployed")
        for each in self.executions():
            if each.name != name or each.status in ENDED:
                continue
            if self._stored(each.execution_id).status not in ENDED:
                raise TransitionError(f"The job named '{name}' runs already, as execution {each.execution_id}")

    def _launched(self, number: int, name: str, what: str) -> ExecutionView:
        path = execution_path(number)
        found = self._wait(lambda: self._mirror.value(path, ExecutionNode), _SHOWN_SECS)
        if found is None:
            raise TransitionError(f"Job '{name}' was not {what}: meanwhile it was undeployed, or launched by others")
        return self._view(number, found)

    def _found(self, number: int) -> ExecutionNode:
        found = self._mirror.value(execution_path(number), ExecutionNode)
        if found is None:
            raise NotFoundError(f"There is no execution {number}")
        return found

    def _stored(self, number: int) -> ExecutionNode:
        """Reads an execution from ZooKeeper: the copy may lag behind what another admin has already returned."""
        return self._tree.read(ExecutionNode, execution_path(number)) or self._found(number)

    def _view(self, number: int, node: ExecutionNode) -> ExecutionView:
        steps = []
        for module in parse_job(node.definition, node.job).modules:
            step = node.steps.get(module.label)
            if step is None:
                waiting = node.status != "COMPLETED"
                steps.append(StepView(name=module.label, status="WAITING" if waiting else "SKIPPED"))
                continue
            steps.append(
                StepView(
                    name=module.label,
                    status=step.status,
                    execution_id=step.execution,
                    container_id=step.container or None,
                    start_time=step.started,
                    end_time=step.ended,
                    exit_code=step.exit,
                    exit_status=(step.exit_status or step.status) if step.status in ENDED else None,
                    error=step.error,
                    log=step.log,
                )
            )
        own = [step.start_time for step in steps if step.execution_id == number and step.start_time is not None]
        return ExecutionView(
            execution_id=number,
            name=node.job,
            definition=node.definition,
            parameters=node.parameters,
            status=node.status,
            create_time=node.created,
            start_time=min(own, default=None),
            end_time=node.ended,
            restarts=node.restarts or None,
            restarted_by=node.restarted_by or None,
            deployed=self._mirror.stat(f"{nodes.JOB_DEPLOYMENTS}/{node.job}") is not None,
            deleted=self._mirror.stat(f"{nodes.JOBS}/{node.job}") is None,
            steps=tuple(steps),
        )
