"""Answers of a cluster's servers as values and errors. Pure: the requests are made elsewhere."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.errors import AuthenticationError, ClusterError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.http.messages import ERRORS, LOG_SIZE, LOG_START

Json = dict[str, Any]

_LEADER_ELSEWHERE: Final = 421
_UNAVAILABLE: Final = frozenset({429, 502, 503, 504})
_ERRORS: Final = {title: kind for kind, status, title in ERRORS if status not in (_LEADER_ELSEWHERE, *_UNAVAILABLE)}
"""The `error` of an answer -> what it is raised as."""


class LogPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a log."""

    data: bytes
    start: int
    """Its first byte's number."""
    size: int
    """The length of the whole log at that moment."""


class KeptLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log that a host has kept."""

    topology_id: str
    link: str
    """The link that `NimbusClient.log` takes."""
    host: str
    port: int
    """The port of the slot."""
    modified: float
    """When something was added last, by the clock of that host; seconds since the epoch."""
    file: str = ""
    """Its name there."""
    size: int = 0
    """In bytes."""


def json_of(response: httpx.Response) -> Json:
    """Returns the JSON object that is an answer.

    Raises:
        ClusterError: it is none.
    """
    try:
        return msgspec.json.decode(response.content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ClusterError(f"{response.request.url}: the answer is not a JSON object: {error}") from error


def log_part_of(response: httpx.Response, link: str) -> LogPart:
    """Returns the part of a log that is an answer.

    Args:
        response: of a supervisor.
        link: what it was asked for.

    Raises:
        ClusterError: it is none.
    """
    try:
        first, size = (int(response.headers[name]) for name in (LOG_START, LOG_SIZE))
    except (KeyError, ValueError) as error:
        raise ClusterError(f"{link} did not answer with a part of a log") from error
    return LogPart(data=response.content, start=first, size=size)


def kept_logs_of(response: httpx.Response, link: str) -> list[KeptLog]:
    """Returns the logs that a supervisor says it has kept.

    Args:
        response: of the supervisor.
        link: its `workerLogsLink`; the link of each log is made from it.
    """
    return [
        KeptLog(
            topology_id=str(row["topologyId"]),
            link=f"{link.removesuffix('s')}?file={quote(str(row['file']), safe='')}",
            host=urlsplit(link).hostname or "",
            port=int(row["port"]),
            modified=float(row["modified"]),
            file=str(row["file"]),
            size=int(row.get("size", 0)),
        )
        for row in json_of(response).get("logs", [])
    ]


def error_of(response: httpx.Response, address: str, server: str = "Nimbus") -> StormError:
    """Returns the error that an answer speaks of.

    Args:
        response: one without success.
        address: of the server that gave it.
        server: what it is; stands before its address in sentences.
    """
    try:
        body = msgspec.json.decode(response.content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        body = {}
    message = str(body.get("errorMessage") or f"{server} {address} answered with HTTP {response.status_code}")
    if response.status_code == _LEADER_ELSEWHERE:
        leader = body.get("leader")
        return NotLeaderError(message, leader if isinstance(leader, str) else None)
    if response.status_code in _UNAVAILABLE:
        return UnavailableError(message)
    if response.status_code == 401:
        return AuthenticationError(f"{server} {address}: {message}")
    return _ERRORS.get(str(body.get("error")), ClusterError)(message)
