"""Requests read with limits, answers written as JSON, errors in Storm UI's shape."""

from __future__ import annotations

import logging
from typing import Any, Final, TypeVar

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, InvalidTopologyError, NotAliveError, StormError
from storm_on_spark.cluster.errors import (
    AuthenticationError,
    CodeError,
    ConflictError,
    ExistsError,
    FencedError,
    ForbiddenError,
    FormatError,
    LimitError,
    NotFoundError,
    NotLeaderError,
    NotOfferedError,
    RecordError,
    TransitionError,
    UnavailableError,
)

logger = logging.getLogger(__name__)

MAX_BODY: Final = 1 << 20
"""Bytes of a request that isn't an artifact."""
BODY_SECS: Final = 30.0
"""That such a request may take to arrive."""

LOG_START: Final = "Storm-Log-Start"
"""Header of a part of a log: its first byte's number."""
LOG_SIZE: Final = "Storm-Log-Size"
"""And how long the whole log is at that moment."""

ERRORS: Final[tuple[tuple[type[StormError], int, str], ...]] = (
    (ForbiddenError, 403, "Forbidden"),
    (AuthenticationError, 401, "Unauthorized"),
    (NotLeaderError, 421, "Not Leader"),
    (NotAliveError, 404, "Not Alive"),
    (NotFoundError, 404, "Not Found"),
    (AlreadyAliveError, 409, "Already Alive"),
    (ExistsError, 409, "Already Exists"),
    (TransitionError, 409, "Conflict"),
    (ConflictError, 409, "Try Again"),
    (LimitError, 413, "Too Much"),
    (NotOfferedError, 501, "Not Implemented"),
    (UnavailableError, 503, "Unavailable"),
    # A repeated request is answered with the present leader.
    (FencedError, 503, "Unavailable"),
    (CodeError, 400, "Bad Code"),
    (FormatError, 409, "Other Format"),
    (RecordError, 400, "Bad Request"),
    (ConfigError, 400, "Bad Configuration"),
    (InvalidTopologyError, 400, "Invalid Topology"),
)
"""An error, the status of the answer, and what the answer calls it. Clients raise the error again by that name."""

T = TypeVar("T")


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Storm UI's error, with the leader if another Nimbus has to be asked."""

    error: str
    error_message: str
    leader: str | None = None


def answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a response with `body` as JSON."""
    return Response(
        msgspec.json.encode(body),
        status,
        {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
        "application/json",
    )


def refusal(error: Exception) -> Response:
    """Returns the response for an error; our own errors are shown, any other is only logged."""
    for kind, status, title in ERRORS:
        if isinstance(error, kind):
            leader = error.leader if isinstance(error, NotLeaderError) else None
            headers = {"Retry-After": "1"} if status == 503 else None
            return answer(ErrorBody(error=title, error_message=scrubbed(str(error)), leader=leader), status, headers)
    logger.error("A request failed", exc_info=error)
    body = ErrorBody(error="Internal Server Error", error_message=f"{type(error).__name__}; see the log of this server")
    return answer(body, 500)


async def read_body(request: Request, most: int = MAX_BODY, secs: float = BODY_SECS) -> bytes:
    """Returns the body of a request.

    Args:
        request: the request.
        most: bytes that it may have.
        secs: that it may take to arrive.

    Raises:
        LimitError: it is too large.
        TimeoutError: it takes too long.
    """
    body = bytearray()
    with anyio.fail_after(secs):
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise LimitError(f"a request has at most {most:,} bytes")
    return bytes(body)


async def read_json(request: Request, kind: type[T], *, strict: bool = True) -> T | None:
    """Returns the body of a request; None if it has none.

    Args:
        request: the request.
        kind: what is expected.
        strict: whether a number must not be a string of digits.

    Raises:
        LimitError: it is too large, or takes too long.
        RecordError: it is something else.
    """
    try:
        body = await read_body(request)
    except TimeoutError:
        raise LimitError(f"a request has at most {BODY_SECS:g} s to arrive") from None
    if not body:
        return None
    try:
        return msgspec.convert(msgspec.json.decode(body), kind, strict=strict)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{request.method} {request.url.path}: {error}") from error


def path_parameter(request: Request, name: str) -> str:
    """Returns a part of the request's path."""
    value: Any = request.path_params[name]
    return str(value)
