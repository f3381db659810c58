"""The REST interface as an ASGI application.

Reads are answered by every Nimbus. What changes something is the leader's: another Nimbus answers 421 with its address.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from storm_on_spark.api.config.secrets import hidden
from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cluster.errors import CodeError, LimitError, RecordError, TransitionError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.guard import caller_of, is_trusted
from storm_on_spark.cluster.http.limits import LEAST_RATE
from storm_on_spark.cluster.http.messages import ErrorBody, answer, path_parameter, read_json, refusal
from storm_on_spark.cluster.http.scraped import Scraped
from storm_on_spark.cluster.http.views import View
from storm_on_spark.cluster.nimbus.accepting.submission import SubmissionState, SubmitRequest, check_key
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.nimbus.repairs import Problem
from storm_on_spark.cluster.nimbus.scheduling.draining import DrainPage
from storm_on_spark.cluster.records import ArtifactInfo, StormBase
from storm_on_spark.cluster.rest import openapi, schemas
from storm_on_spark.cluster.rest.pages import graph, summaries, topology_page
from storm_on_spark.cluster.rest.pages.lag import lag_page
from storm_on_spark.cluster.rest.pages.log_config import LogConfigPage, changes_of, log_config_page
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.rest.picture.warned import topology_warnings
from storm_on_spark.cluster.rest.queries import for_script, selection
from storm_on_spark.cluster.security.permissions import REST, Who
from storm_on_spark.metrics.prometheus import Samples, process_text

PREFIX = "/api/v1"
_BLOCK = 1 << 20
_MOST_UPLOADS = 16
"""At the same time."""
_MOST_LAGS = 4
"""Threads that ask Kafka at the same time."""

Handler = Callable[[Request], Awaitable[Response]]


class RebalanceOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What Storm UI documents of a rebalance."""

    num_workers: int | None = None
    executors: dict[str, int] = {}


class RebalanceRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Body of a rebalance, which may be left out."""

    rebalance_options: RebalanceOptions = RebalanceOptions()
    conf: dict[str, Any] = {}
    """Ours: configuration to change; null is the default again."""
    from_scratch: bool = False
    """Ours: whether it is to forget its state."""


class Problems(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wrong, or what was repaired."""

    problems: tuple[Problem, ...]


class Done(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Storm UI's answer to what changes a topology."""

    topology_operation: str
    topology_id: str
    status: str = "success"


class CredentialsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials of a topology, in place of those that it has."""

    credentials: dict[str, str]


class Submitted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Answer to a submission: it continues by itself; `submission/:key` says how far it is."""

    key: str
    topology_id: str


class Endpoints:
    """The handlers.

    Args:
        control: the Nimbus.
        upload_secs: seconds without a byte after which an upload ends.
    """

    def __init__(self, control: Control, upload_secs: float) -> None:
        self._control = control
        self._upload_secs = upload_secs
        self._uploads = 0
        self._lags: anyio.CapacityLimiter | None = None

    def routes(self) -> list[openapi.Endpoint]:
        """Returns all of them, with what they take and give."""
        get, post, put = "GET", "POST", "PUT"
        e = openapi.Endpoint
        return [
            e(get, "/cluster/configuration", self._configuration, "Configuration of this Nimbus", dict[str, Any]),
            e(get, "/cluster/summary", self._cluster, "The cluster in numbers", schemas.ClusterSummary),
            e(get, "/nimbus/summary", self._nimbuses, "All Nimbuses", schemas.NimbusSummaries),
            e(get, "/supervisor/summary", self._supervisors, "All supervisors", schemas.SupervisorSummaries),
            e(get, "/supervisor", self._supervisor, "A supervisor (?id=) or a host's (?host=)", schemas.SupervisorPage),
            e(get, "/supervisor/{id}/drain", self._drain_page, "What a drain moves, or would move", DrainPage),
            e(post, "/supervisor/{id}/drain", self._drain, "Moves its topologies away, and gives it none", DrainPage),
            e(post, "/supervisor/{id}/undrain", self._undrain, "Gives it topologies again", DrainPage),
            e(get, "/topology/summary", self._topologies, "All topologies", schemas.TopologySummaries),
            e(get, "/topology/{id}", self._topology, "A topology", schemas.TopologyPage),
            e(get, "/topology/{id}/component/{component}", self._component, "A component", schemas.ComponentPage),
            e(get, "/topology/{id}/metrics", self._metrics, "Its counters by component and stream", dict[str, Any]),
            e(get, "/topology/{id}/visualization", self._graph, "Its graph with counters", dict[str, Any]),
            e(get, "/topology/{id}/visualization-init", self._graph_streams, "The graph's streams", dict[str, Any]),
            e(get, "/topology/{id}/errors", self._errors, "Last errors by component", schemas.TopologyErrors),
            e(get, "/topology/{id}/lag", self._lag, "Lag of its Kafka spouts", dict[str, schemas.SpoutLag]),
            e(get, "/topology-workers/{id}", self._workers, "Where its driver is", schemas.TopologyWorkers),
            e(get, "/topology/{id}/logconfig", self._log_levels, "Changed log levels", LogConfigPage),
            e(post, "/topology/{id}/logconfig", self._set_log_levels, "Changes them", LogConfigPage, LogConfigPage),
            e(post, "/topology/{id}/credentials", self._set_credentials, "Gives it credentials", Done, CredentialsBody),
            e(post, "/topology/{id}/activate", self._activate, "Lets its spouts emit", Done),
            e(post, "/topology/{id}/deactivate", self._deactivate, "Stops its spouts", Done),
            e(post, "/topology/{id}/debug/{action}/{spct}", self._debug, "Samples its tuples", Done),
            e(
                post,
                "/topology/{id}/component/{component}/debug/{action}/{spct}",
                self._debug,
                "Samples tuples of a component",
                Done,
            ),
            e(post, "/topology/{id}/rebalance/{wait}", self._rebalance, "Restarts it", Done, RebalanceRequest),
            e(post, "/topology/{id}/kill/{wait}", self._kill, "Ends it", Done),
            e(put, "/submission/{key}/{artifact}", self._upload, "Takes an artifact in", ArtifactInfo, bytes),
            e(get, "/submission/{key}", self._submission, "How far a submission is", SubmissionState),
            e(post, "/topology/submit", self._submit, "Submits what was uploaded", Submitted, SubmitRequest, 202),
            e(get, "/code/{id}/{artifact}", self._code, "An artifact of a topology's code", bytes),
            e(get, "/admin/problems", self._problems, "What is left over or missing in ZooKeeper", Problems),
            e(post, "/admin/repair", self._repair, "Repairs what needs no decision", Problems),
            e(get, "/openapi.json", self._openapi, "This description", dict[str, Any]),
        ]

    async def _configuration(self, request: Request) -> Response:
        return answer(hidden(self._control.conf))

    async def _cluster(self, request: Request) -> Response:
        return await self._page(lambda: summaries.cluster_summary(self._picture()))

    async def _nimbuses(self, request: Request) -> Response:
        settings = self._control.settings
        return await self._page(lambda: summaries.nimbus_summary(self._picture(), settings.seeds, settings.port))

    async def _supervisors(self, request: Request) -> Response:
        return await self._page(lambda: summaries.supervisor_summary(self._picture()))

    async def _supervisor(self, request: Request) -> Response:
        name, host = request.query_params.get("id"), request.query_params.get("host")
        if name is None and host is None:
            raise RecordError("GET supervisor needs ?id=<supervisor id> or ?host=<host>")
        return await self._page(lambda: summaries.supervisor_page(self._picture(), name, host))

    async def _drain_page(self, request: Request) -> Response:
        return answer(await run_in_threadpool(self._control.drain_page, path_parameter(request, "id")))

    async def _drain(self, request: Request) -> Response:
        name, caller = path_parameter(request, "id"), caller_of(request)
        return answer(await run_in_threadpool(self._control.drain, name, caller))

    async def _undrain(self, request: Request) -> Response:
        name, caller = path_parameter(request, "id"), caller_of(request)
        return answer(await run_in_threadpool(lambda: self._control.drain(name, caller, undo=True)))

    async def _topologies(self, request: Request) -> Response:
        return await self._page(lambda: summaries.topology_summary(self._picture()))

    async def _topology(self, request: Request) -> Response:
        window, sys = selection(request)

        def page() -> schemas.TopologyPage:
            return topology_page.topology_page(*self._found(request), window, sys=sys)

        return await self._page(page)

    async def _component(self, request: Request) -> Response:
        name = path_parameter(request, "component")
        window, sys = selection(request)

        def page() -> schemas.ComponentPage:
            picture, base, errors = self._found(request)
            found = topology_page.component_page(picture, base, name, errors, window, sys=sys)
            if found is None:
                known = ", ".join(sorted(picture.components(base))) or "unknown"
                raise NotAliveError(f"topology {base.topology_id} has no component {name[:200]!r}; it has: {known}")
            return found

        return await self._page(page)

    async def _metrics(self, request: Request) -> Response:
        return await self._of_window(request, graph.metrics_page)

    async def _graph(self, request: Request) -> Response:
        return await self._of_window(request, graph.visualization)

    async def _graph_streams(self, request: Request) -> Response:
        return await self._of_window(request, graph.visualization_init)

    async def _of_window(self, request: Request, page: Callable[..., dict[str, Any]]) -> Response:
        window, sys = selection(request)
        base = self._control.topology(path_parameter(request, "id"))
        return answer(await run_in_threadpool(lambda: page(self._picture(), base, window, sys=sys)))

    async def _errors(self, request: Request) -> Response:
        return await self._page(lambda: topology_page.topology_errors(*self._found(request)))

    async def _lag(self, request: Request) -> Response:
        topology_id = self._control.topology(path_parameter(request, "id")).topology_id
        plan = self._picture().plan(topology_id)
        # A broker that doesn't answer holds up those who ask for a lag, and nobody else.
        self._lags = self._lags or anyio.CapacityLimiter(_MOST_LAGS)
        return answer(await anyio.to_thread.run_sync(lag_page, plan, limiter=self._lags))

    async def _workers(self, request: Request) -> Response:
        def page() -> schemas.TopologyWorkers:
            base = self._control.topology(path_parameter(request, "id"))
            return summaries.topology_workers(self._picture(), base)

        return await self._page(page)

    async def _log_levels(self, request: Request) -> Response:
        return answer(log_config_page(self._control.log_levels(path_parameter(request, "id"))))

    async def _set_log_levels(self, request: Request) -> Response:
        changes = changes_of(await read_json(request, LogConfigPage), self._control.now())
        topology_id, caller = path_parameter(request, "id"), caller_of(request)
        after = await run_in_threadpool(self._control.set_log_levels, topology_id, changes, caller)
        return answer(log_config_page(after.levels))

    async def _set_credentials(self, request: Request) -> Response:
        body, caller = await read_json(request, CredentialsBody), caller_of(request)
        if body is None:
            raise RecordError("a push of credentials needs a body with credentials: names and their values")
        topology_id = path_parameter(request, "id")
        await run_in_threadpool(self._control.set_credentials, topology_id, body.credentials, caller)
        return answer(Done(topology_operation="credentials", topology_id=topology_id))

    async def _activate(self, request: Request) -> Response:
        return await self._change(request, "activate", lambda name: self._control.activate(name, caller_of(request)))

    async def _deactivate(self, request: Request) -> Response:
        return await self._change(
            request, "deactivate", lambda name: self._control.deactivate(name, caller_of(request))
        )

    async def _debug(self, request: Request) -> Response:
        action, spct = path_parameter(request, "action"), path_parameter(request, "spct")
        component = path_parameter(request, "component") if "component" in request.path_params else ""
        percent = sampled_percent(action, spct)
        what = f"debug/{action}"
        return await self._change(
            request, what, lambda name: self._control.sample(name, component, percent, caller_of(request))
        )

    async def _kill(self, request: Request) -> Response:
        wait = _wait(path_parameter(request, "wait"))
        return await self._change(request, "kill", lambda name: self._control.kill(name, wait, caller_of(request)))

    async def _rebalance(self, request: Request) -> Response:
        wait = _wait(path_parameter(request, "wait"))
        # Storm's own documentation has numbers as strings here.
        body = await read_json(request, RebalanceRequest, strict=False) or RebalanceRequest()
        workers = body.rebalance_options.num_workers
        conf = {**({} if workers is None else {"topology.workers": workers}), **body.conf}
        executors = body.rebalance_options.executors
        return await self._change(
            request,
            "rebalance",
            lambda name: self._control.rebalance(name, wait, conf, executors, body.from_scratch, by=caller_of(request)),
        )

    async def _upload(self, request: Request) -> Response:
        key, name = path_parameter(request, "key"), path_parameter(request, "artifact")
        check_key(key)
        await run_in_threadpool(self._control.fence)
        if self._uploads >= _MOST_UPLOADS:
            raise LimitError(f"{_MOST_UPLOADS} uploads are under way; try again later")
        self._uploads += 1
        try:
            return await self._receive(request, key, name)
        finally:
            self._uploads -= 1

    async def _receive(self, request: Request, key: str, name: str) -> Response:
        with self._control.inbox.receiving(key, name) as receiver:
            announced = request.headers.get("content-length", "")
            if announced.isdecimal() and int(announced) > receiver.limit:
                raise LimitError(f"{name} has {int(announced):,} bytes; at most {receiver.limit:,} are allowed")
            parts = request.stream()
            block = bytearray()
            began, received = anyio.current_time(), 0
            while True:
                secs = upload_secs_left(self._upload_secs, received, anyio.current_time() - began)
                try:
                    with anyio.fail_after(max(0.0, secs)):
                        part = await anext(parts, None)
                except TimeoutError:
                    raise LimitError(
                        f"{name}: no byte came for {self._upload_secs:g} s, or fewer than {LEAST_RATE:,} a second: "
                        f"{received:,} in {anyio.current_time() - began:.0f} s"
                    ) from None
                if part is not None:
                    received += len(part)
                    block += part
                if block and (part is None or len(block) >= _BLOCK):
                    await run_in_threadpool(receiver.write, bytes(block))
                    block.clear()
                if part is None:
                    break
            return answer(await run_in_threadpool(receiver.finish))

    async def _submission(self, request: Request) -> Response:
        key = check_key(path_parameter(request, "key"))
        found = self._control.submission(key)
        if found is None:
            raise NotAliveError(f"there is no submission {key}")
        return answer(found)

    async def _submit(self, request: Request) -> Response:
        body = await read_json(request, SubmitRequest)
        if body is None:
            raise RecordError("POST topology/submit needs a body")
        if not is_trusted(request):
            # Anyone with the token may submit for others.
            body = msgspec.structs.replace(body, owner=caller_of(request))
        topology_id = await run_in_threadpool(self._control.submit, body, caller_of(request))
        return answer(Submitted(key=body.key, topology_id=topology_id), 202)

    async def _code(self, request: Request) -> Response:
        topology_id, name = path_parameter(request, "id"), path_parameter(request, "artifact")
        try:
            path = await run_in_threadpool(self._control.artifact, topology_id, name)
        except CodeError as error:
            return answer(ErrorBody(error="Not Found", error_message=str(error)), 404)
        return FileResponse(path, media_type="application/octet-stream")

    async def _problems(self, request: Request) -> Response:
        return answer(Problems(problems=await run_in_threadpool(self._control.problems)))

    async def _repair(self, request: Request) -> Response:
        return answer(Problems(problems=await run_in_threadpool(self._control.repair, caller_of(request))))

    async def _openapi(self, request: Request) -> Response:
        return answer(openapi.describe(self.routes(), PREFIX, self._control.version))

    def scraped(self) -> bytes:
        """Returns `/metrics`."""
        picture, samples = self._picture(), Samples()
        snapshot = picture.snapshot
        samples.add("storm_nimbus_leader", (), self._control.leads)
        samples.add("storm_cluster_topologies", (), len(snapshot.storms))
        for name, supervisor in snapshot.supervisors.items():
            samples.add("storm_supervisor_slots", (name,), len(supervisor.slots))
            samples.add("storm_supervisor_slots_used", (name,), picture.slots_used.get(name, 0))
        for topology_id in snapshot.storms:
            info = picture.info(topology_id)
            if info is not None:
                samples.add_topology(topology_id, info)
            for warning in topology_warnings(picture, snapshot.storms[topology_id]):
                place = topology_id, warning.rule, warning.component
                samples.add("storm_topology_warning", place, 1)
        return process_text([samples])

    def allowing(self, endpoint: openapi.Endpoint) -> Callable[[Request], None]:
        """Returns what refuses those who may not use an endpoint."""
        right = REST[endpoint.method, endpoint.path]

        def allow(request: Request) -> None:
            who = Who(caller_of(request), is_trusted(request))
            topology_id = str(request.path_params.get("id", ""))
            self._control.check(right, who, topology_id, f"{endpoint.method} {endpoint.path}")

        return allow

    def _picture(self) -> Picture:
        return Picture.of(self._control)

    def _found(self, request: Request) -> tuple[Picture, StormBase, topology_page.Errors]:
        base = self._control.topology(path_parameter(request, "id"))
        picture = self._picture()
        errors = self._control.errors(base.topology_id)
        return picture, base, topology_page.beat_errors(picture, base.topology_id) if errors is None else errors

    async def _page(self, make: Callable[[], View]) -> Response:
        return answer(await run_in_threadpool(make))

    async def _change(self, request: Request, what: str, change: Callable[[str], StormBase]) -> Response:
        topology_id = path_parameter(request, "id")
        await run_in_threadpool(change, topology_id)
        return answer(Done(topology_operation=what, topology_id=topology_id))


def make_app(control: Control, authentication: Authentication) -> ASGIApp:
    """Returns the application.

    Args:
        control: the Nimbus.
        authentication: who may ask.
    """
    endpoints = Endpoints(control, float(control.settings.upload_expiration_secs))
    routes = [
        Route(PREFIX + each.path, _answering(each.handler, endpoints.allowing(each)), methods=[each.method])
        for each in endpoints.routes()
    ]

    async def unknown(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        title = "Method Not Allowed" if status == 405 else "Not Found"
        return answer(ErrorBody(error=title, error_message=f"{request.method} {request.url.path[:300]}"), status)

    app = Starlette(routes=routes, exception_handlers={404: unknown, 405: unknown})
    return Scraped(app, authentication, endpoints.scraped)


def upload_secs_left(pause: float, received: int, elapsed: float) -> float:
    """Returns how long to wait for the next bytes of an upload.

    One that sends a byte now and then is no better than one that sends none: it has a place that others want.

    Args:
        pause: most seconds without a byte, and what a slow one has in advance.
        received: bytes that came.
        elapsed: seconds since the upload began.

    Example:
        >>> [upload_secs_left(60.0, 4096 * 30, elapsed) for elapsed in (0.0, 30.0, 80.0, 95.0)]
        [60.0, 60.0, 10.0, -5.0]
    """
    return min(pause, pause + received / LEAST_RATE - elapsed)


def _answering(handler: Handler, allow: Callable[[Request], None]) -> Handler:
    """Returns the handler with its errors as answers; Starlette's own handler of all errors raises them again."""

    async def answering(request: Request) -> Response:
        try:
            allow(request)
            return for_script(request, await handler(request))
        except ClientDisconnect:
            # Nobody reads it.
            return Response(status_code=400)
        except Exception as error:
            return refusal(error)

    return answering


def sampled_percent(action: str, spct: str) -> float:
    """Returns the share of tuples that Storm's `debug` asks for.

    Raises:
        TransitionError: that makes no sense.

    Example:
        >>> sampled_percent("enable", "12.5"), sampled_percent("disable", "0")
        (12.5, 0.0)
    """
    if action not in ("enable", "disable"):
        raise TransitionError(f"{action[:80]!r} is neither `enable` nor `disable`")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", spct) or float(spct) > 100:
        raise TransitionError(f"{spct[:80]!r} is not a share of tuples; expected a number from 0 to 100")
    return float(spct) if action == "enable" else 0.0


def _wait(text: str) -> float | None:
    """Returns a wait in seconds; None for `default`."""
    if text == "default":
        return None
    if not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
        raise TransitionError(f"{text[:80]!r} is neither a number of seconds to wait nor `default`")
    return float(text)
