"""The pages as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, Generic
from urllib.parse import parse_qs

import anyio
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from storm_on_spark.api.errors import NotAliveError, StormError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cluster.errors import AuthenticationError, LimitError
from storm_on_spark.cluster.http.messages import path_parameter, read_body
from storm_on_spark.cluster.security.permissions import page_right
from storm_on_spark.web.access.gate import SAFE_HEADERS, Gate
from storm_on_spark.web.access.sessions import Session
from storm_on_spark.web.looks import Look, Looks
from storm_on_spark.web.model import RefusedError
from storm_on_spark.web.pages.question import Asked, S
from storm_on_spark.web.pages.registry import Book, Page
from storm_on_spark.web.rates import Rates
from storm_on_spark.web.rendering import ROOT, STATIC, Renderer, part_of, path, static_file

logger = logging.getLogger(__name__)

_LIVE_SECS: Final = 1.0
_MOST_LIVE: Final = 64
"""Streams at the same time; further browsers ask for the page now and then."""
_MOST_PAUSE_SECS: Final = 30.0
_MOST_FORM: Final = 16 << 10
_ENDS: Final = ("destroy",)
"""Actions after which their subject has no page."""
_LOCAL_NAME: Final = "local user"

Handler = Callable[[Request], Awaitable[Response]]


class App(Generic[S]):
    """The handlers.

    Args:
        site: what there is to see.
        gate: who may see it.
        book: the pages of such a site.
        live_secs: between two looks of a page that is open.
    """

    def __init__(self, site: S, gate: Gate, book: Book[S], live_secs: float = _LIVE_SECS) -> None:
        self._site = site
        self._gate = gate
        self._book = book
        self._live_secs = live_secs
        self._renderer = Renderer()
        self._rates = Rates()
        self._looks = Looks()
        self._live = 0
        self._closing = False

    def close(self) -> None:
        """Ends the streams, so that the server needn't wait for them."""
        self._closing = True

    def asgi(self) -> Starlette:
        """Returns the application."""
        routes = [
            Route("/", self._root, methods=["GET"]),
            Route(ROOT, self._root, methods=["GET"]),
            Route(f"{ROOT}/static/{{name}}", self._guarded(self._static, public=True), methods=["GET"]),
            Route(f"{ROOT}/login", self._guarded(self._login, public=True), methods=["GET"]),
            Route(f"{ROOT}/login", self._guarded(self._logs_in, public=True), methods=["POST"]),
            Route(f"{ROOT}/logout", self._guarded(self._logout), methods=["POST"]),
            Route(f"{ROOT}/link", self._guarded(self._link), methods=["POST"]),
            *(
                Route(f"{ROOT}/{kind}/{{id}}/act/{{action}}", self._guarded(self._action_of(kind)), methods=["POST"])
                for kind in self._book.subjects
            ),
            *(Route(ROOT + page.path, self._guarded(self._page(page)), methods=["GET"]) for page in self._book.pages),
        ]
        return Starlette(routes=routes, exception_handlers={404: self._unknown, 405: self._unknown})

    async def _root(self, request: Request) -> Response:
        return RedirectResponse(f"{ROOT}/", 303, SAFE_HEADERS)

    async def _unknown(self, request: Request, error: Exception) -> Response:
        return self._refused(request, NotAliveError("there is no such page"), getattr(error, "status_code", 404))

    def _guarded(self, handler: Handler, *, public: bool = False) -> Handler:
        """Returns a handler behind the gate, with its errors as pages."""

        async def guarded(request: Request) -> Response:
            cookie = None
            try:
                self._gate.check_host(request)
                session = self._gate.session(request)
                if session is None and not self._gate.login.required:
                    # Everybody on this host is an operator; the session is for the forms.
                    cookie = self._gate.sessions.begin("operator", _LOCAL_NAME)
                    session = self._gate.sessions.find(cookie)
                request.state.session = session
                if session is None and not public:
                    response = self._please_log_in(request)
                else:
                    response = await handler(request)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                response = self._refused(request, error, _status(error))
            if cookie is not None:
                self._gate.remember(response, cookie)
            for name, value in SAFE_HEADERS.items():
                response.headers[name] = value
            response.headers.setdefault("Cache-Control", "no-store")
            response.headers["Vary"] = "Accept, Cookie"
            return response

        return guarded

    # Logging in and out.

    def _please_log_in(self, request: Request, problem: str = "", status: int = 401) -> Response:
        values = {
            "session": None,
            "ways": self._gate.login.ways,
            "problem": problem,
            "plain": not self._gate.is_private(request),
        }
        return self._html("login.html", request, values, status)

    async def _login(self, request: Request) -> Response:
        code = request.query_params.get("code", "")
        if not code:
            return self._please_log_in(request, status=200)
        if request.method == "HEAD":
            return Response(status_code=200)
        cookie = self._gate.sessions.redeem(code) if self._gate.sessions.may_try() else None
        if cookie is None:
            self._gate.sessions.failed()
            if self._gate.session(request) is not None:
                # The link was used by this browser before.
                return RedirectResponse(f"{ROOT}/", 303)
            return self._please_log_in(request, "This link was used before, or is too old: ask for a new one.", 403)
        response = RedirectResponse(f"{ROOT}/", 303)
        self._gate.remember(response, cookie)
        return response

    async def _logs_in(self, request: Request) -> Response:
        self._gate.check_origin(request)
        form = await _form(request)
        if not self._gate.sessions.may_try():
            return self._please_log_in(request, "Too many logins failed: wait for a minute.", 429)
        found = await run_in_threadpool(self._gate.login.role, form.get("user", ""), form.get("secret", ""))
        if found is None:
            self._gate.sessions.failed()
            return self._please_log_in(request, "That is not right.", 403)
        response = RedirectResponse(f"{ROOT}/", 303)
        name, role = found
        self._gate.remember(response, self._gate.sessions.begin(role, name))
        return response

    async def _logout(self, request: Request) -> Response:
        form = await _form(request)
        self._gate.check_form(request, _session(request), form.get("csrf", ""))
        response = RedirectResponse(f"{ROOT}/login", 303)
        self._gate.forget(request, response)
        return response

    async def _link(self, request: Request) -> Response:
        """Shows a link that logs in one more browser, with a role that is no higher than the asker's."""
        form = await _form(request)
        session = _session(request)
        self._gate.check_form(request, session, form.get("csrf", ""))
        if session.role == "owner":
            raise AuthenticationError("who may use some topologies only has no links for others")
        role = "operator" if form.get("role") == "operator" and session.role == "operator" else "reader"
        code = self._gate.sessions.new_code("operator" if role == "operator" else "reader", session.name)
        link = f"{request.url.scheme}://{request.headers['host']}{ROOT}/login?code={code}"
        return self._html("link.html", request, {"link": link, "role": role})

    # Pages and actions.

    async def _static(self, request: Request) -> Response:
        name = path_parameter(request, "name")
        if name not in STATIC:
            raise NotAliveError("there is no such file")
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": STATIC[name]}
        return Response(static_file(name), headers=headers)

    def _page(self, page: Page[S]) -> Handler:
        right = page_right("GET", page.path)

        async def show(request: Request) -> Response:
            subject = str(request.path_params.get("id", ""))
            self._gate.check_right(_session(request), right, part_of(subject) if subject else "")
            question = Asked(
                self._site,
                self._rates,
                {name: part_of(str(value)) for name, value in request.path_params.items()},
                dict(request.query_params),
            )
            if "text/event-stream" in request.headers.get("accept", ""):
                return await self._stream(page, question, request)
            look, _ = await self._look(page, question, request)
            if look.to:
                return RedirectResponse(look.to, 303)
            return self._html(page.template, request, {**look.values, "live": look.live})

        return show

    async def _look(self, page: Page[S], question: Asked[S], request: Request) -> tuple[Look, float]:
        """Returns what a page shows to everybody, and how long that took."""
        # Not of this session: what is made once is shown to all.
        common, renderer = {**self._common(request), "session": None, "may_act": False}, self._renderer

        def make() -> Look:
            values = page.make(question)
            if isinstance(values, str):
                return Look({}, Markup(""), values)
            return Look(values, renderer.live(page.template, {**common, **values}))

        return await self._looks.of((request.url.path, request.url.query), make, far=page.far)

    async def _stream(self, page: Page[S], question: Asked[S], request: Request) -> Response:
        if self._live >= _MOST_LIVE or self._closing:
            return Response(status_code=503, headers={"Retry-After": "10"})
        gate = self._gate

        async def events() -> AsyncIterator[bytes]:
            self._live += 1
            try:
                last = ""
                while not self._closing and (gate.session(request) is not None or not gate.login.required):
                    look, spent = await self._look(page, question, request)
                    html = str(look.live)
                    if html != last:
                        last = html
                        lines = lines_of(html.replace("\r", "\n"))
                        yield ("".join(f"data: {line}\n" for line in lines) + "\n").encode()
                    else:
                        yield b": nothing new\n\n"
                    await anyio.sleep(live_pause(spent, self._live, self._live_secs))
            except StormError:
                # What it shows is no more; the page says so when it is loaded again.
                yield b"event: gone\ndata:\n\n"
            finally:
                self._live -= 1

        return StreamingResponse(events(), media_type="text/event-stream")

    def _action_of(self, kind: str) -> Handler:
        """Returns the handler of the actions on a kind of subject."""
        acts, right = self._book.subjects[kind](self._site), page_right("POST", f"/{kind}/{{id}}/act/{{action}}")

        async def act(request: Request) -> Response:
            form = await _form(request)
            session = _session(request)
            self._gate.check_form(request, session, form.get("csrf", ""))
            subject, action = part_of(path_parameter(request, "id")), path_parameter(request, "action")
            # A stream is not a topology with an owner: for an owner's role there is none of that name.
            self._gate.check_right(session, right, subject)
            if action not in acts.actions:
                raise NotAliveError(f"there is no action {action[:80]!r} here")
            about = {"subject": subject, "kind": kind, "back": path(kind, subject)}
            if form.get("sure") != "yes":
                return self._html("confirm.html", request, {**about, "action": action, "options": form})
            try:
                said = await run_in_threadpool(acts.act, subject, action, form, session.name)
            finally:
                self._looks.forget()
            logger.info("%s: %s of %s %s by the pages", session.name, action, kind, subject)
            return self._html("done.html", request, {**about, "said": said, "gone": action in _ENDS})

        return act

    # Answers.

    def _common(self, request: Request) -> dict[str, Any]:
        session: Session | None = getattr(request.state, "session", None)
        return {
            "site": self._site,
            "session": session,
            "may_act": session is not None and session.role != "reader",
            "is_cluster": getattr(self._site, "is_cluster", False),
            "menu": [(ROOT + to, words) for to, words in self._book.menu(self._site)],
            "here": request.url.path,
        }

    def _html(self, template: str, request: Request, values: Mapping[str, Any], status: int = 200) -> Response:
        return HTMLResponse(self._renderer.page(template, {**self._common(request), **values}), status)

    def _refused(self, request: Request, error: Exception, status: int) -> Response:
        message = str(error) if isinstance(error, StormError) else f"{type(error).__name__}; see the log of this server"
        if not isinstance(error, StormError):
            logger.error("A page failed", exc_info=error)
        response = self._html("error.html", request, {"message": message, "status": status}, status)
        response.headers.update(SAFE_HEADERS)
        response.headers["Cache-Control"] = "no-store"
        return response


def live_pause(spent: float, streams: int, least: float) -> float:
    """Returns how long a stream waits before it looks again: all streams together take a quarter of the time at most.

    Args:
        spent: seconds that the last look took.
        streams: that are open.
        least: seconds to wait at least.

    Example:
        >>> live_pause(0.005, 2, 1.0), live_pause(0.1, 20, 1.0), live_pause(2.0, 60, 1.0)
        (1.0, 8.0, 30.0)
    """
    return max(least, min(_MOST_PAUSE_SECS, 4 * spent * streams))


async def _form(request: Request) -> dict[str, str]:
    """Returns the fields of a form; each name counts once."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise AuthenticationError("a form must be application/x-www-form-urlencoded")
    try:
        body = await read_body(request, _MOST_FORM)
    except TimeoutError:
        raise LimitError("the form took too long to arrive") from None
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError as error:
        raise LimitError(f"no form: {error}") from None
    return {name: values[0] for name, values in found.items()}


def _session(request: Request) -> Session:
    session: Session = request.state.session
    return session


def _status(error: Exception) -> int:
    from storm_on_spark.cluster.http.messages import refusal

    if isinstance(error, AuthenticationError):
        return 403
    if isinstance(error, RefusedError):
        return 400
    return refusal(error).status_code if isinstance(error, StormError) else 500
