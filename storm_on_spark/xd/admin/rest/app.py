"""The REST interface of an admin as an ASGI application: a handler for each of `RESOURCES`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

import storm_on_spark
from storm_on_spark.cluster.errors import (
    NotFoundError,
    RecordError,
    TransitionError,
    UnavailableError,
)
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import caller_of
from storm_on_spark.cluster.http.messages import ErrorBody, answer, read_json, refusal
from storm_on_spark.cluster.http.scraped import Scraped
from storm_on_spark.cluster.rest.openapi import Endpoint, describe
from storm_on_spark.metrics.prometheus import Samples, process_text
from storm_on_spark.xd.admin.changes import Changes
from storm_on_spark.xd.admin.checks import check_job, check_stream
from storm_on_spark.xd.admin.completions import completions, job_completions
from storm_on_spark.xd.admin.core import Definitions, JobRuntime, Runtime
from storm_on_spark.xd.admin.picture import parsed_as
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.calls import Call, Handler
from storm_on_spark.xd.admin.rest.counters import CounterHandlers
from storm_on_spark.xd.admin.rest.executions import ExecutionHandlers
from storm_on_spark.xd.admin.rest.lifecycle import Lifecycle
from storm_on_spark.xd.admin.rest.resources import RESOURCES, Resource
from storm_on_spark.xd.dsl import DslError
from storm_on_spark.xd.modules import ModuleType
from storm_on_spark.xd.modules.local_registry import AnyModule, ComposedModule, LocalRegistry, ModuleRegistryError
from storm_on_spark.xd.modules.python_files import checksum
from storm_on_spark.xd.tree.nodes import Kind

PRODUCT: Final = "storm-on-spark"
ABOUT: Final = (
    "Admin of Storm on Spark's streams",
    "Streams and jobs by description, as Spring XD has them. Every admin answers every request.",
)
_TYPES: Final = get_args(ModuleType)


@dataclass(frozen=True)
class Parts:
    """What the REST interface of an admin needs."""

    definitions: Definitions
    """The streams that were created."""
    runtime: Runtime
    """What deploys them."""
    jobs: Definitions
    """The jobs that were created."""
    job_runtime: JobRuntime
    """What deploys and launches them."""
    registry: LocalRegistry
    """The modules."""
    changes: Changes
    """The record of who changed what."""


class Handlers:
    """Implements the resources. Methods have the names of the resources, whose summaries describe them; they block.

    Args:
        parts: what the interface needs.
    """

    def __init__(self, parts: Parts) -> None:
        self._definitions, self._jobs = parts.definitions, parts.jobs
        self._runtime = parts.runtime
        self._registry = parts.registry
        self._changes = parts.changes
        streams = Lifecycle("stream", parts.definitions, parts.runtime, self._check_stream)
        jobs = Lifecycle("job", parts.jobs, parts.job_runtime, self._check_job)
        executions = ExecutionHandlers(parts.jobs, parts.job_runtime)
        #: Name of a resource -> its function, for resources that are not methods of this class.
        self.others: dict[str, Handler] = {
            **streams.handlers(),
            **jobs.handlers(),
            **executions.handlers(),
            **CounterHandlers().handlers(),
        }

    def handler(self, name: str) -> Handler:
        """Returns the function of a resource."""
        found: Handler = self.others[name] if name in self.others else getattr(self, name)
        return found

    def list_modules(self, call: Call) -> schemas.PageOf[schemas.ModuleView]:
        type_ = call.query.get("type")
        if type_ is not None and type_ not in _TYPES:
            raise RecordError(f"Expected one of {', '.join(_TYPES)} as type, got {type_!r:.100}")
        found = self._registry.all(cast(ModuleType | None, type_))
        return call.page(schemas.ModuleView(**_module(each)) for each in found)

    def get_module(self, call: Call) -> schemas.ModuleDetail:
        return self._detail(self._module(call))

    def compose_module(self, call: Call) -> schemas.ModuleDetail:
        asked: schemas.ComposeModule = call.body
        return self._detail(self._registry.compose(asked.name, asked.definition))

    def upload_module(self, call: Call) -> schemas.ModuleDetail:
        asked: schemas.UploadModule = call.body
        source = asked.source.encode()
        if checksum(source) != asked.sha256:
            raise RecordError(f"Expected a text with the SHA-256 {asked.sha256}, got {checksum(source)}")
        return self._detail(self._registry.upload_source(source, asked.file))

    def delete_module(self, call: Call) -> None:
        type_, name = cast(ModuleType, call.path["type"]), call.path["name"]
        # The module may be one that can't be loaded.
        if type_ not in _TYPES or name not in self._registry.names(type_):
            raise _no_module(type_, name)
        users = {"stream": self._definitions.all(), "job": self._jobs.all()}
        used = [
            f"{kind} {each}"
            for kind, found in users.items()
            for each, text in sorted(found.items())
            if (type_, name) in _used(cast(Kind, kind), each, text)
        ]
        if used:
            raise TransitionError(f"The module {type_}:{name} can't be deleted: it is used by {', '.join(used[:10])}")
        self._registry.delete(type_, name)

    def list_containers(self, call: Call) -> schemas.PageOf[schemas.ContainerView]:
        return call.page(self._runtime.containers())

    def list_runtime_modules(self, call: Call) -> schemas.PageOf[schemas.RuntimeModuleView]:
        container, module = call.query.get("containerId"), call.query.get("moduleId")
        return call.page(
            each
            for each in self._runtime.modules()
            # In Spring XD a module's id has no number.
            if container in (None, each.container_id) and module in (None, each.name, each.name.rpartition(".")[0])
        )

    def complete_job(self, call: Call) -> schemas.Completions:
        return schemas.Completions(proposals=job_completions(call.query.get("start", ""), self._registry))

    def complete(self, call: Call) -> schemas.Completions:
        start = call.query.get("start", "")
        streams = self._definitions.all() if "tap:" in start else ()
        return schemas.Completions(proposals=completions(start, self._registry, streams))

    def version(self, call: Call) -> schemas.Version:
        return schemas.Version(product=PRODUCT, version=storm_on_spark.__version__)

    def describe(self, call: Call) -> dict[str, Any]:
        return describe(_endpoints(self, self._changes), "", storm_on_spark.__version__, ABOUT)

    def validate(self, call: Call) -> schemas.Validation:
        asked: schemas.Validate = call.body

        def others() -> dict[str, str]:
            return {name: text for name, text in self._definitions.all().items() if name != asked.name}

        try:
            if asked.kind == "job":
                check_job(asked.name, asked.definition, self._registry)
            else:
                check_stream(asked.name, asked.definition, self._registry, others)
        except DslError as error:
            problem = schemas.Problem(code=error.code.value, position=error.position, message=error.message)
            return schemas.Validation(valid=False, problem=problem)
        return schemas.Validation(valid=True)

    def _check_stream(self, name: str, definition: str) -> None:
        check_stream(name, definition, self._registry, self._definitions.all)

    def _check_job(self, name: str, definition: str) -> None:
        check_job(name, definition, self._registry)

    def _module(self, call: Call) -> AnyModule:
        type_, name = call.path["type"], call.path["name"]
        try:
            return self._registry.find(cast(ModuleType, type_), name)
        except KeyError:
            raise _no_module(type_, name) from None

    def _detail(self, found: AnyModule) -> schemas.ModuleDetail:
        options = tuple(
            schemas.OptionView.of(each, default_value=each.default, description=each.help)
            for each in self._registry.options(found)
        )
        return schemas.ModuleDetail(**_module(found), options=options)


def make_app(parts: Parts, authentication: Authentication) -> ASGIApp:
    """Returns the application.

    Args:
        parts: what the interface needs.
        authentication: who may send requests.
    """
    endpoints = _endpoints(Handlers(parts), parts.changes)
    routes = [Route(each.path, each.handler, methods=[each.method]) for each in endpoints]

    async def unknown(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        title = "Method Not Allowed" if status == 405 else "Not Found"
        message = f"There is no {request.method} {request.url.path[:300]}"
        return answer(ErrorBody(error=title, error_message=message), status)

    app = Starlette(routes=routes, exception_handlers={404: unknown, 405: unknown})
    # A path has one form: a redirect would cost a request, and a redirected POST would lose its body.
    app.router.redirect_slashes = False
    return Scraped(app, authentication, lambda: scraped(parts))


def scraped(parts: Parts) -> bytes:
    """Returns `/metrics`."""
    samples = Samples()
    containers = parts.runtime.containers()
    samples.add("storm_xd_containers", (), len(containers))
    for each in containers:
        place, told = (each.container_id, each.host), each.metrics
        samples.add("storm_xd_container_modules", place, told.modules)
        samples.add("storm_xd_container_received_messages", place, told.messages_in)
        samples.add("storm_xd_container_emitted_messages", place, told.messages_out)
        samples.add("storm_xd_container_memory_bytes", place, told.memory or None)
        samples.add("storm_xd_container_cores", place, told.cores)
    samples.add("storm_xd_modules", (), len(parts.runtime.modules()))
    for kind, runtime in (("stream", parts.runtime), ("job", parts.job_runtime)):
        for state, count in Counter(each.state for each in runtime.deployments().values()).items():
            samples.add("storm_xd_deployments", (kind, state), count)
    return process_text([samples])


def _endpoints(handlers: Handlers, changes: Changes) -> list[Endpoint]:
    """Returns the resources with their handlers."""
    return [
        Endpoint(
            each.method,
            each.path,
            _answering(each, handlers.handler(each.name), changes),
            each.summary,
            each.gives,
            each.takes,
            each.status,
            each.name,
            each.query,
        )
        for each in RESOURCES
    ]


def _answering(resource: Resource, handler: Handler, changes: Changes) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        call = None
        try:
            call = await _call(resource, request)
            found = await run_in_threadpool(handler, call)
            if resource.changes:
                await run_in_threadpool(changes.note, caller_of(request), *_told(resource, call, found))
        except UnavailableError as error:
            if call is not None and resource.changes:
                # The change may still happen, or has happened in part.
                what, name = _told(resource, call, None)
                await run_in_threadpool(changes.note, caller_of(request), f"{what} (its end was not seen)", name)
            return refusal(error)
        except ClientDisconnect:
            # Nobody reads the answer.
            return Response(status_code=400)
        except (DslError, ModuleRegistryError) as error:
            return refusal(RecordError(str(error)))
        except Exception as error:
            return refusal(error)
        return Response(status_code=resource.status) if resource.gives is None else answer(found, resource.status)

    return answering


def _told(resource: Resource, call: Call, found: Any) -> tuple[str, str]:
    """Returns the kind and name of what a request has changed."""
    what = resource.name.replace("_", " ")
    if resource.name == "change_execution":
        what = ("stop" if "stop" in call.query else "restart") + " execution"
    elif isinstance(call.body, schemas.CreateDefinition) and call.body.deploy:
        what += " and deploy it"
    name = (
        call.path.get("name") or call.path.get("id") or getattr(call.body, "name", None) or getattr(found, "name", "")
    )
    return what, str(name)


async def _call(resource: Resource, request: Request) -> Call:
    query = dict(request.query_params)
    for name in query:
        if name not in resource.query:
            allowed = ", ".join(resource.query) or "no parameters"
            raise RecordError(f"{request.method} {request.url.path[:300]} takes {allowed}, got {name!r:.100}")
    body = None
    if resource.takes is not None:
        body = await read_json(request, resource.takes)
        if body is None:
            if resource.takes is not schemas.Deploy:
                raise RecordError(f"{request.method} {request.url.path[:300]} needs a body")
            body = schemas.Deploy()
    return Call(request.path_params, query, body)


def _used(kind: Kind, name: str, definition: str) -> set[tuple[str, str]]:
    """Returns type and name of the modules of a stream or a job; nothing for an invalid text."""
    try:
        whole, types = parsed_as(kind, name, definition)
    except DslError:
        return set()
    return {(type_, each.name) for each, type_ in zip(whole.modules, types.values(), strict=True)}


def _no_module(type_: str, name: str) -> NotFoundError:
    return NotFoundError(f"There is no module {f'{type_}:{name}'!r:.100}")


def _module(found: AnyModule) -> dict[str, Any]:
    return {
        "type": found.type,
        "name": found.name,
        "composed": isinstance(found, ComposedModule),
        "description": found.help,
    }
