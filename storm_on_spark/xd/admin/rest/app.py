"""The REST interface of an admin as an ASGI application: a handler for each of `RESOURCES`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
    NotOfferedError,
    RecordError,
    TransitionError,
    UnavailableError,
)
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import Guard
from storm_on_spark.cluster.http.messages import ErrorBody, answer, read_json, refusal
from storm_on_spark.cluster.rest.openapi import Endpoint, describe
from storm_on_spark.xd.admin.checks import check_stream
from storm_on_spark.xd.admin.completions import completions
from storm_on_spark.xd.admin.core import Definitions, Runtime
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.resources import RESOURCES, Resource
from storm_on_spark.xd.admin.rules import State
from storm_on_spark.xd.dsl import DslError
from storm_on_spark.xd.modules import ModuleType
from storm_on_spark.xd.modules.local_registry import AnyModule, ComposedModule, LocalRegistry, ModuleRegistryError

PRODUCT: Final = "storm-on-spark"
ABOUT: Final = (
    "Admin of Storm on Spark's streams",
    "Streams by description, as Spring XD has them. Every admin answers every request.",
)
_JOBS: Final = "/jobs/"
_TYPES: Final = get_args(ModuleType)
_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{schemas.MAXIMUM_NAME - 1}}}")


@dataclass(frozen=True)
class Call:
    """A request whose form has been checked."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any

    def page(self, entries: Iterable[Any]) -> schemas.PageOf[Any]:
        """Returns the page of a list that was asked for."""
        number, size = self._number("page", 0), self._number("size", schemas.DEFAULT_PAGE_SIZE)
        try:
            return schemas.page_of(tuple(entries), number, size)
        except ValueError as error:
            raise RecordError(str(error)) from error

    def _number(self, name: str, default: int) -> int:
        text = self.query.get(name)
        if text is None:
            return default
        if not re.fullmatch("[0-9]{1,9}", text):
            raise RecordError(f"Expected a number as {name}, got {text!r:.100}")
        return int(text)


Handler = Callable[[Call], Any]


class Handlers:
    """What the resources do. Methods have the names of the resources, whose summaries say what they are; they block.

    Args:
        definitions: the streams that were created.
        runtime: what deploys them.
        registry: the modules.
    """

    def __init__(self, definitions: Definitions, runtime: Runtime, registry: LocalRegistry) -> None:
        self._definitions = definitions
        self._runtime = runtime
        self._registry = registry

    def list_streams(self, call: Call) -> schemas.PageOf[schemas.DefinitionView]:
        deployed = self._runtime.deployments()
        return call.page(
            schemas.DefinitionView(
                name=name, definition=text, status=deployed[name].state if name in deployed else "undeployed"
            )
            for name, text in self._definitions.all().items()
        )

    def create_stream(self, call: Call) -> schemas.DefinitionView:
        asked: schemas.CreateDefinition = call.body
        check_stream(asked.name, asked.definition, self._registry, self._definitions.all)
        self._definitions.create(asked.name, asked.definition)
        status: State = "undeployed"
        if asked.deploy:
            try:
                status = self._runtime.deploy(asked.name, {}, fused=False).state
            except UnavailableError as error:
                # It may be deployed all the same, when there is a leader again: so it stays.
                raise UnavailableError(f"Stream '{asked.name}' was created, but is not deployed: {error}") from error
        return schemas.DefinitionView(name=asked.name, definition=asked.definition, status=status)

    def destroy_streams(self, call: Call) -> None:
        self._each(self._definitions.all(), self._destroy, "destroyed")

    def get_stream(self, call: Call) -> schemas.DefinitionView:
        name, text = self._defined(call)
        deployed = self._runtime.deployment(name)
        return schemas.DefinitionView(
            name=name, definition=text, status="undeployed" if deployed is None else deployed.state
        )

    def destroy_stream(self, call: Call) -> None:
        self._destroy(self._defined(call)[0])

    def list_stream_deployments(self, call: Call) -> schemas.PageOf[schemas.DeploymentView]:
        return call.page(view for _, view in sorted(self._runtime.deployments().items()))

    def undeploy_streams(self, call: Call) -> None:
        self._each(sorted(self._runtime.deployments()), self._undeploy_if_deployed, "undeployed")

    def get_stream_deployment(self, call: Call) -> schemas.DeploymentView:
        name, _ = self._defined(call)
        found = self._runtime.deployment(name)
        if found is not None:
            return found
        return schemas.DeploymentView(name=name, state="undeployed", properties={}, modules=())

    def deploy_stream(self, call: Call) -> schemas.DeploymentView:
        name, _ = self._defined(call)
        asked: schemas.Deploy = call.body
        return self._runtime.deploy(name, asked.properties, asked.fused)

    def undeploy_stream(self, call: Call) -> None:
        self._runtime.undeploy(self._defined(call)[0])

    def list_modules(self, call: Call) -> schemas.PageOf[schemas.ModuleView]:
        type_ = call.query.get("type")
        if type_ is not None and type_ not in _TYPES:
            raise RecordError(f"Expected one of {', '.join(_TYPES)} as type, got {type_!r:.100}")
        found = self._registry.all(cast(ModuleType | None, type_))
        return call.page(schemas.ModuleView(**_module(each)) for each in found)

    def get_module(self, call: Call) -> schemas.ModuleDetail:
        type_, name = call.path["type"], call.path["name"]
        try:
            found = self._registry.find(cast(ModuleType, type_), name)
        except KeyError:
            raise NotFoundError(f"There is no module {f'{type_}:{name}'!r:.100}") from None
        options = tuple(
            schemas.OptionView(
                name=each.name,
                type=each.type,
                default_value=each.default,
                description=each.help,
                choices=each.choices,
            )
            for each in self._registry.options(found)
        )
        return schemas.ModuleDetail(**_module(found), options=options)

    def list_containers(self, call: Call) -> schemas.PageOf[schemas.ContainerView]:
        return call.page(self._runtime.containers())

    def list_runtime_modules(self, call: Call) -> schemas.PageOf[schemas.RuntimeModuleView]:
        container = call.query.get("containerId")
        return call.page(each for each in self._runtime.modules() if container in (None, each.container_id))

    def complete(self, call: Call) -> schemas.Completions:
        start = call.query.get("start", "")
        streams = self._definitions.all() if "tap:" in start else ()
        return schemas.Completions(proposals=completions(start, self._registry, streams))

    def version(self, call: Call) -> schemas.Version:
        return schemas.Version(product=PRODUCT, version=storm_on_spark.__version__)

    def describe(self, call: Call) -> dict[str, Any]:
        return describe(_endpoints(self), "", storm_on_spark.__version__, ABOUT)

    def validate(self, call: Call) -> schemas.Validation:
        asked: schemas.Validate = call.body
        if asked.kind == "job":
            self.no_jobs(call)

        def others() -> dict[str, str]:
            return {name: text for name, text in self._definitions.all().items() if name != asked.name}

        try:
            check_stream(asked.name, asked.definition, self._registry, others)
        except DslError as error:
            problem = schemas.Problem(code=error.code.value, position=error.position, message=error.message)
            return schemas.Validation(valid=False, problem=problem)
        return schemas.Validation(valid=True)

    def no_jobs(self, call: Call) -> None:
        raise NotOfferedError("Jobs are not there yet: this admin runs streams only")

    def _defined(self, call: Call) -> tuple[str, str]:
        name = call.path["name"]
        if not _NAME.fullmatch(name):
            raise NotFoundError(f"There is no stream named {name!r:.100}")
        return name, self._definitions.get(name)

    def _destroy(self, name: str) -> None:
        self._undeploy_if_deployed(name)
        self._definitions.remove(name)

    def _undeploy_if_deployed(self, name: str) -> None:
        if self._runtime.deployment(name) is None:
            return
        try:
            self._runtime.undeploy(name)
        except TransitionError:
            if self._runtime.deployment(name) is not None:
                raise

    def _each(self, names: Iterable[str], action: Callable[[str], None], done: str) -> None:
        for count, name in enumerate(names):
            try:
                action(name)
            except NotFoundError:
                # Somebody else was faster.
                continue
            except (TransitionError, UnavailableError) as error:
                raise type(error)(f"{count} streams were {done}; '{name}' was not: {error}") from error


def make_app(
    definitions: Definitions, runtime: Runtime, registry: LocalRegistry, authentication: Authentication
) -> ASGIApp:
    """Returns the application.

    Args:
        definitions: the streams that were created.
        runtime: what deploys them.
        registry: the modules.
        authentication: who may ask.
    """
    endpoints = _endpoints(Handlers(definitions, runtime, registry))
    routes = [Route(each.path, each.handler, methods=[each.method]) for each in endpoints]

    async def unknown(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        title = "Method Not Allowed" if status == 405 else "Not Found"
        message = f"There is no {request.method} {request.url.path[:300]}"
        return answer(ErrorBody(error=title, error_message=message), status)

    app = Starlette(routes=routes, exception_handlers={404: unknown, 405: unknown})
    # A path has one form: a redirect would be one more request, and of a POST without its body.
    app.router.redirect_slashes = False
    return Guard(app, authentication)


def _endpoints(handlers: Handlers) -> list[Endpoint]:
    """Returns the resources with what answers them: the method of that name, or for jobs a refusal."""
    return [
        Endpoint(
            each.method,
            each.path,
            _answering(each, handlers.no_jobs if each.path.startswith(_JOBS) else getattr(handlers, each.name)),
            each.summary,
            each.gives,
            each.takes,
            each.status,
            each.name,
            each.query,
        )
        for each in RESOURCES
    ]


def _answering(resource: Resource, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        try:
            call = await _call(resource, request)
            found = await run_in_threadpool(handler, call)
        except ClientDisconnect:
            # Nobody reads it.
            return Response(status_code=400)
        except (DslError, ModuleRegistryError) as error:
            return refusal(RecordError(str(error)))
        except Exception as error:
            return refusal(error)
        return Response(status_code=resource.status) if resource.gives is None else answer(found, resource.status)

    return answering


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


def _module(found: AnyModule) -> dict[str, Any]:
    return {
        "type": found.type,
        "name": found.name,
        "composed": isinstance(found, ComposedModule),
        "description": found.help,
    }
