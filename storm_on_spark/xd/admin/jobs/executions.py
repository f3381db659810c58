"""The executions of jobs. The leading admin advances them: it accepts orders, starts steps and collects reports.

A step whose container departs has failed, and so has its execution, which can be restarted. It is not restarted
automatically, because the step may have written part of its output to other systems. A job has one execution at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from storm_on_spark.cluster.errors import ConflictError
from storm_on_spark.cluster.zookeeper.changes import Change, Create, Delete, Fence, Put
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.jobs.progress import progress
from storm_on_spark.xd.admin.picture import Deployed
from storm_on_spark.xd.dsl import DslError, parse_job
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.jobs import (
    ENDED,
    REPORT,
    RUN,
    ExecutionNode,
    ReportNode,
    RunNode,
    StepNode,
    execution_path,
    step_path,
)
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import EXECUTIONS, Deployment, Order, StatusNode

logger = logging.getLogger(__name__)

MOST_EXECUTIONS: Final = 500
"""Most executions that are stored; the oldest ended ones are removed first."""


class Executions:
    """The leader's work on executions; one thread calls it.

    Args:
        mirror: the copy of the tree.
        tree: in ZooKeeper, for what is written.
        clock: seconds since 1970.
    """

    def __init__(self, mirror: Mirror, tree: Tree, clock: Callable[[], float] = time.time) -> None:
        self._mirror = mirror
        self._tree = tree
        self._clock = clock

    def carried_out(self, order: Order, number: int) -> list[Change]:
        """Returns the changes for an order to launch, stop or restart; none if the order no longer applies.

        Raises:
            ConflictError: the copy does not show the latest execution yet.
        """
        if order.action == "stop":
            return self._stopped(order.execution)
        path = f"{nodes.JOB_DEPLOYMENTS}/{order.stream}"
        deployment, stat = self._mirror.value(path, Deployment), self._mirror.stat(path)
        definition = self._mirror.value(f"{nodes.JOBS}/{order.stream}", nodes.Definition)
        if deployment is None or stat is None or deployment.going or definition is None or self._busy(deployment):
            return []
        found = ExecutionNode(
            job=order.stream,
            definition=definition.definition,
            parameters=order.properties,
            status="STARTING",
            created=self._clock(),
        )
        changes: list[Change] = []
        if order.action == "restart":
            before, at = self._execution(order.execution)
            if before is None or before.definition != found.definition or not restartable(before):
                return []
            try:
                broken = progress(parse_job(before.definition, before.job).flow, before.steps).broken
            except DslError as error:
                logger.error("Execution %d has no job: %s", order.execution, error)
                return []
            done = {label: step for label, step in before.steps.items() if label not in broken}
            found = replace(found, parameters=before.parameters, restarts=order.execution, steps=done)
            path_before = execution_path(order.execution)
            changes.append(Put(path_before, replace(before, restarted_by=number + 1), at))
        logger.info("Launching job %s, execution %d", order.stream, number + 1)
        if self._mirror.stat(EXECUTIONS) is None:
            changes.append(Create(EXECUTIONS, nodes.EMPTY))
        # The version check fails if another execution was launched since this was decided.
        changes.append(Put(path, replace(deployment, execution=number + 1), stat.version))
        changes.append(Create(execution_path(number + 1), found))
        return [*changes, *self._too_old(order.execution)]

    def round(self, fence: Fence, every: Sequence[Deployed], there: Mapping[str, object]) -> None:
        """Advances all executions that have not ended.

        Args:
            fence: the leadership.
            every: what is deployed.
            there: the containers that are there.

        Raises:
            FencedError: another admin leads.
            UnavailableError: ZooKeeper is away.
        """
        jobs = {deployed.name: deployed for deployed in every if deployed.kind == "job"}
        for number, execution, version in self._all():
            if execution.status in ENDED:
                continue
            changes = self._advanced(number, execution, version, jobs.get(execution.job), there)
            if not changes:
                continue
            try:
                self._tree.commit(fence, *changes)
            except ConflictError as error:
                logger.debug("Execution %d waits for the next round: %s", number, error)

    def holds(self, deployed: Deployed, there: Mapping[str, object]) -> bool:
        """Whether the modules of a job must stay where they are until its execution has advanced."""
        number = deployed.deployment.execution
        if deployed.kind != "job" or not number:
            return False
        execution, _ = self._execution(number)
        if execution is None:
            return True
        if execution.status in ENDED:
            return False
        running = (step for step in execution.steps.values() if step.status not in ENDED)
        return deployed.deployment.going or any(step.container not in there for step in running)

    def _busy(self, deployment: Deployment) -> bool:
        if not deployment.execution:
            return False
        latest, _ = self._execution(deployment.execution)
        if latest is None:
            raise ConflictError(f"execution {deployment.execution} is not in the copy yet")
        return latest.status not in ENDED

    def _stopped(self, number: int) -> list[Change]:
        found, version = self._execution(number)
        if found is None or found.status in ENDED or found.stopping:
            return []
        logger.info("Stopping execution %d of job %s", number, found.job)
        return [Put(execution_path(number), replace(found, stopping=True, status="STOPPING"), version)]

    def _too_old(self, kept: int) -> list[Change]:
        """Removes ended executions beyond the limit, but not the latest of a deployed job."""
        ended = [(number, each) for number, each, _ in self._all() if each.status in ENDED and number != kept]
        latest = {
            found.execution
            for name in self._mirror.children(nodes.JOB_DEPLOYMENTS)
            if (found := self._mirror.value(f"{nodes.JOB_DEPLOYMENTS}/{name}", Deployment)) is not None
        }
        surplus = len(self._mirror.children(EXECUTIONS)) + 1 - MOST_EXECUTIONS
        old = [number for number, _ in ended if number not in latest]
        return [Delete(execution_path(number)) for number in old[: max(0, surplus)]]

    def _advanced(
        self,
        number: int,
        execution: ExecutionNode,
        version: int,
        deployed: Deployed | None,
        there: Mapping[str, object],
    ) -> list[Change]:
        """Returns the changes for one execution."""
        changes: list[Change] = []
        steps = dict(execution.steps)
        for label, step in execution.steps.items():
            if step.status not in ENDED:
                steps[label], more = self._collected(number, execution.job, label, step, there)
                changes += more
        try:
            flow = parse_job(execution.definition, execution.job).flow
        except DslError as error:
            logger.error("Execution %d has no job: %s", number, error)
            return []
        stopping = execution.stopping or deployed is None or deployed.deployment.going
        found = progress(flow, steps, stopping=stopping)
        if stopping:
            changes += self._stops(number, execution.job, steps)
        elif deployed is not None:
            for label in found.next:
                started = self._started(number, deployed, label, there)
                if started is not None:
                    steps[label], more = started
                    changes += more
        for label in found.broken:
            step = steps[label]
            if found.status == "FAILED" and not step.error:
                why = f"its exit status {step.exit_status or step.status!r} ended the job"
                steps[label] = replace(step, error=why)
        status = found.status or ("STOPPING" if stopping else "STARTED" if steps else "STARTING")
        after = replace(execution, steps=steps, status=status, ended=self._clock() if found.status else None)
        if after == execution and not changes:
            return []
        if found.status is not None:
            logger.info("Execution %d of job %s: %s", number, execution.job, found.status)
        return [Put(execution_path(number), after, version), *changes]

    def _collected(
        self, number: int, job: str, label: str, step: StepNode, there: Mapping[str, object]
    ) -> tuple[StepNode, list[Change]]:
        """Returns a running step with its container's reports applied, and the nodes to remove once it has ended."""
        path = step_path(step.container, job, label)
        run, report = f"{path}/{RUN}{number}", f"{path}/{REPORT}{number}"
        told, stat = self._mirror.value(report, ReportNode), self._mirror.stat(report)
        if told is not None:
            step = replace(
                step,
                status=told.status,
                started=told.started,
                ended=told.ended,
                exit=told.exit,
                exit_status=told.exit_status,
                error=told.error,
                log=told.log,
            )
        gone = step.container not in there
        if step.status not in ENDED and not gone:
            return step, []
        if step.status not in ENDED:
            error = f"container {step.container} departed while the step ran"
            step = replace(step, status="FAILED", ended=self._clock(), error=error)
        changes: list[Change] = [Delete(run)]
        if told is None or stat is None:
            # These changes fail if the container has reported meanwhile.
            changes += [Create(report, nodes.EMPTY), Delete(report)]
        else:
            changes += [Put(report, told, stat.version), Delete(report)]
        return step, changes

    def _stops(self, number: int, job: str, steps: Mapping[str, StepNode]) -> Iterator[Change]:
        for label, step in steps.items():
            run = f"{step_path(step.container, job, label)}/{RUN}{number}"
            known, stat = self._mirror.value(run, RunNode), self._mirror.stat(run)
            if step.status not in ENDED and known is not None and stat is not None and not known.stopping:
                yield Put(run, RunNode(stopping=True), stat.version)

    def _started(
        self, number: int, deployed: Deployed, label: str, there: Mapping[str, object]
    ) -> tuple[StepNode, list[Change]] | None:
        """Returns a step to start and the changes that start it; None while it has no container."""
        for each in deployed.allocated:
            if each.name.label != label or each.container not in there:
                continue
            if each.state == "failed":
                status = self._mirror.value(f"{each.path}/status", StatusNode)
                error = "" if status is None else status.error
                now = self._clock()
                failed = StepNode(
                    status="FAILED", execution=number, container=each.container, started=now, ended=now, error=error
                )
                return failed, []
            if each.state == "deployed":
                step = StepNode(status="STARTING", execution=number, container=each.container)
                return step, [Create(f"{each.path}/{RUN}{number}", RunNode())]
        return None

    def _execution(self, number: int) -> tuple[ExecutionNode | None, int]:
        path = execution_path(number)
        stat = self._mirror.stat(path)
        return self._mirror.value(path, ExecutionNode), -1 if stat is None else stat.version

    def _all(self) -> Iterator[tuple[int, ExecutionNode, int]]:
        for name in self._mirror.children(EXECUTIONS):
            if name.isdecimal():
                found, version = self._execution(int(name))
                if found is not None:
                    yield int(name), found, version


def restartable(execution: ExecutionNode) -> bool:
    """Whether an execution can be restarted: it has not completed, and no other one continues it."""
    return execution.status in ENDED - {"COMPLETED"} and not execution.restarted_by
