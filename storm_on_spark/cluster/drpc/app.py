"""DRPC over HTTP: Storm's paths, answers as text, errors in Storm's shape."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from storm_on_spark.cluster.drpc.broker import Broker
from storm_on_spark.cluster.drpc.rights import FunctionRights
from storm_on_spark.cluster.errors import ForbiddenError, LimitError
from storm_on_spark.cluster.http.guard import caller_of, is_trusted
from storm_on_spark.cluster.http.messages import BODY_SECS, ErrorBody, answer, read_body, refusal
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException

STATUS: Final = {
    DRPCExceptionType.FAILED_REQUEST: 400,
    DRPCExceptionType.SERVER_SHUTDOWN: 503,
    DRPCExceptionType.SERVER_TIMEOUT: 504,
    DRPCExceptionType.INTERNAL_ERROR: 500,
}
"""As Storm's server answers."""


def make_app(broker: Broker, most_bytes: int, rights: FunctionRights | None = None) -> Starlette:
    """Returns the application.

    Args:
        broker: of the server.
        most_bytes: of the body of a request.
        rights: who may call what; None if everybody may call all.
    """

    async def execute(request: Request, function: str, arguments: str) -> Response:
        if rights is not None and not is_trusted(request):
            try:
                rights.check_client(caller_of(request) or None, function)
            except ForbiddenError as error:
                return refusal(error)
        try:
            result = await broker.execute(function, arguments)
        except DRPCExecutionException as error:
            return answer(ErrorBody(error=error.type.name, error_message=str(error)), STATUS[error.type])
        return PlainTextResponse(result, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})

    async def post(request: Request) -> Response:
        try:
            function, rest = _path(request)
            if rest:
                return answer(ErrorBody(error="Not Found", error_message="the arguments of a POST are its body"), 404)
            arguments = (await read_body(request, most_bytes)).decode()
        except TimeoutError:
            return refusal(LimitError(f"a request has at most {BODY_SECS:g} s to arrive"))
        except UnicodeDecodeError as error:
            return _not_utf8(error)
        except LimitError as error:
            return refusal(error)
        return await execute(request, function, arguments)

    async def get(request: Request) -> Response:
        try:
            function, arguments = _path(request)
        except UnicodeDecodeError as error:
            return _not_utf8(error)
        return await execute(request, function, arguments)

    return Starlette(
        routes=[
            Route("/drpc/{path:path}", post, methods=["POST"]),
            Route("/drpc/{path:path}", get, methods=["GET"]),
        ]
    )


def _path(request: Request) -> tuple[str, str]:
    """Returns function and arguments. A slash in the name of a function is `%2F`.

    Raises:
        UnicodeDecodeError: one of them is not UTF-8.
    """
    _, _, function, *arguments = request.scope["raw_path"].split(b"/", 3)
    return unquote_to_bytes(function).decode(), unquote_to_bytes(b"".join(arguments)).decode()


def _not_utf8(error: UnicodeDecodeError) -> Response:
    text = f"function and arguments are UTF-8, and these are not: {error.reason} at byte {error.start}"
    return answer(ErrorBody(error="Bad Request", error_message=text), 400)
