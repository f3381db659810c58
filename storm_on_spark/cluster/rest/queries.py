"""What requests ask for beside their path: a window, system components, and a script in place of JSON."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from storm_on_spark.api.info import ALL_TIME, check_window
from storm_on_spark.cluster.errors import RecordError

_CALLBACK: Final = re.compile(r"[A-Za-z_$][\w$.]{0,99}", re.ASCII)


def for_script(request: Request, response: Response) -> Response:
    """Returns the answer as a script that calls `callback`, if the request names one, as Storm UI does (JSONP).

    Raises:
        RecordError: `callback` is not the name of a function.
    """
    callback = request.query_params.get("callback")
    if callback is None or request.method != "GET" or response.media_type != "application/json":
        return response
    if not _CALLBACK.fullmatch(callback):
        raise RecordError(f"callback is a name of a function, with dots at most, not {callback[:80]!r}")
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    # The comment keeps the answer from beginning with what the request says.
    script = f"/**/{callback}(".encode() + bytes(response.body) + b");"
    return Response(script, response.status_code, headers, "application/javascript")


def selection(request: Request) -> tuple[str, bool]:
    """Returns the window that a request asks for, and whether it wants system components and streams, too.

    Raises:
        RecordError: there is no such window, or `sys` is neither true nor false.
    """
    sys = request.query_params.get("sys", "false")
    if sys not in ("true", "1", "false", "0"):
        raise RecordError(f"sys is true or false, not {sys[:80]!r}")
    try:
        return check_window(request.query_params.get("window", ALL_TIME)), sys in ("true", "1")
    except ValueError as error:
        raise RecordError(str(error)) from None
