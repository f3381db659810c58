"""The REST interface of an admin without ZooKeeper and containers, for tests of the interface itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import httpx
from msgspec.structs import replace

from storm_on_spark.cluster.errors import ExistsError, NotFoundError, RecordError, TransitionError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.xd.admin.picture import parsed_as
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.app import Parts, make_app
from storm_on_spark.xd.dsl import parse_job
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.tree.nodes import ChangeNode, Kind

CONTAINER = "2ebbbc9b-63ac-4da4-aa32-e39d69eb546b"
METRICS = schemas.MetricsView(started=1, modules=2, messages_in=30, messages_out=20, rates={}, memory=1, cores=0.5)


class MemoryDefinitions:
    def __init__(self, kind: Kind = "stream") -> None:
        self.kind = kind
        self.texts: dict[str, str] = {}

    def create(self, name: str, definition: str) -> None:
        if name in self.texts:
            raise ExistsError(f"There is already a {self.kind} named '{name}'")
        self.texts[name] = definition

    def remove(self, name: str) -> None:
        self.get(name)
        del self.texts[name]

    def get(self, name: str) -> str:
        if name not in self.texts:
            raise NotFoundError(f"There is no {self.kind} named '{name}'")
        return self.texts[name]

    def all(self) -> dict[str, str]:
        return dict(sorted(self.texts.items()))


class MemoryRuntime:
    """One container, in which everything is deployed at once."""

    def __init__(self, definitions: MemoryDefinitions) -> None:
        self._definitions = definitions
        self.deployed: dict[str, schemas.DeploymentView] = {}
        self.refusal: Exception | None = None
        """Raised by each deployment."""
        self.answer: schemas.DeploymentView | None = None
        """Of each deployment, if it is not to succeed."""

    def deploy(self, name: str, properties: Mapping[str, str], fused: bool) -> schemas.DeploymentView:
        if self.refusal is not None:
            raise self.refusal
        if self.answer is not None:
            return self.answer
        if any(not key.startswith("module.") for key in properties):
            raise RecordError(f"Expected module.<label>.<property>, got {sorted(properties)[0]!r:.100}")
        if name in self.deployed:
            raise TransitionError(f"{self._definitions.kind.capitalize()} '{name}' is deployed already")
        whole, _ = parsed_as(self._definitions.kind, name, self._definitions.get(name))
        modules = tuple(f"{module.name}.1.{CONTAINER}" for module in whole.modules)
        self.deployed[name] = schemas.DeploymentView(
            name=name, state="deployed", properties=dict(properties), modules=modules
        )
        return self.deployed[name]

    def undeploy(self, name: str) -> None:
        if self.deployed.pop(name, None) is None:
            raise TransitionError(f"{self._definitions.kind.capitalize()} '{name}' is not deployed")

    def deployment(self, name: str) -> schemas.DeploymentView | None:
        return self.deployed.get(name)

    def deployments(self) -> dict[str, schemas.DeploymentView]:
        return dict(self.deployed)

    def containers(self) -> list[schemas.ContainerView]:
        return [
            schemas.ContainerView(
                container_id=CONTAINER,
                host="ultrafox.local",
                ip="192.168.1.6",
                pid=19222,
                groups=("fast", "big"),
                attributes={"rack": "7"},
                deployed_modules=2 * len(self.deployed),
                metrics=METRICS,
            )
        ]

    def modules(self) -> list[schemas.RuntimeModuleView]:
        found = []
        for name in sorted(self.deployed):
            kinds = (
                ("sink.log", {"name": name, "expression": "payload", "level": "INFO"}),
                ("source.time", {"fixedDelay": "1", "format": "yyyy-MM-dd HH:mm:ss"}),
            )
            found += [
                schemas.RuntimeModuleView(
                    name=f"{name}.{module}.1",
                    container_id=CONTAINER,
                    options=options,
                    deployment_properties={"count": "1", "sequence": "1"},
                    state="deployed",
                )
                for module, options in kinds
            ]
        return found


class MemoryJobRuntime(MemoryRuntime):
    """Jobs of which a launch runs until it is stopped."""

    def __init__(self, definitions: MemoryDefinitions) -> None:
        super().__init__(definitions)
        self.launched: dict[int, schemas.ExecutionView] = {}

    def launch(self, name: str, parameters: Mapping[str, str]) -> schemas.ExecutionView:
        if name not in self.deployed:
            raise TransitionError(f"The job named '{name}' is not currently deployed")
        number = len(self.launched) + 1
        job = parse_job(self._definitions.get(name), name)
        self.launched[number] = schemas.ExecutionView(
            execution_id=number,
            name=name,
            definition=self._definitions.get(name),
            parameters=dict(parameters),
            status="STARTED",
            create_time=1_795_533_718.313,
            start_time=1_795_533_718.5,
            end_time=None,
            deployed=True,
            deleted=False,
            steps=tuple(
                schemas.StepView(name=module.label, status="STARTED", execution_id=number, log="/bus/jobs/a.log")
                for module in job.modules
            ),
        )
        return self.launched[number]

    def executions(self) -> list[schemas.ExecutionView]:
        return list(reversed(self.launched.values()))

    def execution(self, number: int) -> schemas.ExecutionView:
        if number not in self.launched:
            raise NotFoundError(f"There is no execution {number}")
        return self.launched[number]

    def stop(self, number: int) -> schemas.ExecutionView:
        if self.execution(number).status == "STOPPED":
            raise TransitionError(f"Execution {number} has ended already")
        self.launched[number] = replace(self.execution(number), status="STOPPED", end_time=1_795_533_719.0)
        return self.launched[number]

    def restart(self, number: int) -> schemas.ExecutionView:
        if self.execution(number).status != "STOPPED":
            raise TransitionError(f"Execution {number} can't be restarted")
        return self.launch(self.execution(number).name, self.execution(number).parameters)


class MemoryChanges:
    """What was noted, oldest first."""

    def __init__(self) -> None:
        self.noted: list[ChangeNode] = []

    def note(self, who: str, what: str, name: str) -> None:
        self.noted.append(ChangeNode(time=1_764_244_800.0, who=who, what=what, name=name))

    def all(self) -> list[ChangeNode]:
        return list(reversed(self.noted))


class Admin:
    """The interface and what it stands on."""

    def __init__(self) -> None:
        self.definitions = MemoryDefinitions()
        self.runtime = MemoryRuntime(self.definitions)
        self.jobs = MemoryDefinitions("job")
        self.changes = MemoryChanges()
        self.job_runtime = MemoryJobRuntime(self.jobs)
        parts = Parts(self.definitions, self.runtime, self.jobs, self.job_runtime, LocalRegistry(), self.changes)
        self.app = make_app(parts, Authentication())

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Returns the answer to a request, which needs no socket."""

        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9393") as client:
                return await client.request(method, path, **more)

        return asyncio.run(sent())

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, Any]:
        """Returns status and body of an answer."""
        response = self.send(method, path, **({} if body is None else {"json": body}), **more)
        return response.status_code, cast(Any, response.json()) if response.content else None

    def told(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, str, str]:
        """Returns status, title and sentence of a refusal."""
        status, found = self.ask(method, path, body, **more)
        return status, found["error"], found["errorMessage"]
