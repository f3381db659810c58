"""Prepared jobs: one that has completed, one that runs, one that failed, one that was never launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace
from sample_site import HARM, NOW

from storm_on_spark.cluster.errors import NotFoundError, TransitionError
from storm_on_spark.xd.admin.rest.schemas import DeploymentView, ExecutionView, StepView
from storm_on_spark.xd.tree.jobs import ENDED

CONTAINER = "2ebbbc9b-63ac-4da4-aa32-e39d69eb546b"
JOBS = {
    "nightly": "load --url=jdbc:postgresql://ann:hush@db/sales || report",
    "endless": "wait",
    "poisoned": "load || report",
    "fresh": "load",
    HARM: HARM,
}
LONG_STEP = "a-step-with-a-name-that-is-longer-than-any-column"


def step(name: str, status: Any, number: int, **more: Any) -> StepView:
    values = {"container_id": CONTAINER, "start_time": NOW - 300, "log": f"executions/{number}/{name}.log", **more}
    return StepView(name=name, status=status, execution_id=number, **values)


def execution(number: int, name: str, status: Any, *steps: StepView, **more: Any) -> ExecutionView:
    values = {"parameters": {}, "create_time": NOW - 310, "start_time": NOW - 300, "end_time": None, **more}
    known = {"deployed": name in JOBS, "deleted": name not in JOBS}
    text = JOBS.get(name, "load")
    return ExecutionView(execution_id=number, name=name, definition=text, status=status, steps=steps, **known, **values)


class SampleJobs:
    """Definitions and runtime in one, in memory."""

    def __init__(self) -> None:
        self.texts = dict(JOBS)
        self.deployed = {"nightly": "deployed", "endless": "deployed", "poisoned": "deployed"}
        self.done: list[tuple[str, str, Mapping[str, str]]] = []
        ended = {"end_time": NOW - 60, "exit_code": 0, "exit_status": "COMPLETED"}
        said = f"ValueError: password=hush {HARM}"
        harmed = {"end_time": NOW - 250, "exit_code": 1, "exit_status": "FAILED", "error": said}
        given = {"date": "2026-11-27", "password": "hush", HARM: HARM}
        never = StepView(name="report", status="WAITING")
        failed = [step("load", "FAILED", number, **harmed) for number in (8, 5)]
        self.kept = [
            execution(9, "endless", "STARTED", step("wait", "STARTED", 9)),
            execution(8, "poisoned", "FAILED", failed[0], never, end_time=NOW - 250, parameters=given, restarts=5),
            execution(
                7,
                "nightly",
                "COMPLETED",
                *(step(name, "COMPLETED", 7, **ended) for name in ("load", "report")),
                end_time=NOW - 60,
            ),
            execution(5, "poisoned", "FAILED", failed[1], never, end_time=NOW - 260, restarted_by=8),
            execution(4, "is-gone", "STOPPED", step(LONG_STEP, "STOPPED", 4, end_time=NOW - 200, exit_code=-15)),
        ]

    # Definitions.

    def create(self, name: str, definition: str) -> None:
        self.texts[name] = definition

    def remove(self, name: str) -> None:
        del self.texts[name]
        self.done.append(("destroy", name, {}))

    def get(self, name: str) -> str:
        return self.texts[name]

    def all(self) -> dict[str, str]:
        return dict(self.texts)

    # Runtime.

    def deploy(self, name: str, properties: Mapping[str, str], fused: bool) -> DeploymentView:
        self.deployed[name] = "deployed"
        self.done.append(("deploy", name, properties))
        return self.deployments()[name]

    def undeploy(self, name: str) -> None:
        if self.deployed.pop(name, None) is None:
            raise TransitionError(f"The job named '{name}' is not currently deployed")
        self.done.append(("undeploy", name, {}))

    def deployment(self, name: str) -> DeploymentView | None:
        return self.deployments().get(name)

    def deployments(self) -> dict[str, DeploymentView]:
        return {
            name: DeploymentView(name=name, state=state, properties={}, modules=())  # type: ignore[arg-type]
            for name, state in self.deployed.items()
        }

    def launch(self, name: str, parameters: Mapping[str, str]) -> ExecutionView:
        if any(each.name == name and each.status not in ENDED for each in self.kept):
            raise TransitionError(f"The job named '{name}' runs already")
        self.done.append(("launch", name, parameters))
        number = self.kept[0].execution_id + 1
        self.kept.insert(0, execution(number, name, "STARTING", start_time=None, parameters=dict(parameters)))
        return self.kept[0]

    def executions(self) -> list[ExecutionView]:
        return list(self.kept)

    def execution(self, number: int) -> ExecutionView:
        found = next((each for each in self.kept if each.execution_id == number), None)
        if found is None:
            raise NotFoundError(f"There is no execution {number}")
        return found

    def stop(self, number: int) -> ExecutionView:
        found = self.execution(number)
        if found.status in ENDED:
            raise TransitionError(f"Execution {number} has ended already")
        self.done.append(("stop", str(number), {}))
        self.kept[self.kept.index(found)] = stopped = replace(found, status="STOPPED", end_time=NOW)
        return stopped

    def restart(self, number: int) -> ExecutionView:
        self.done.append(("restart", str(number), {}))
        return self.launch(self.execution(number).name, {})
