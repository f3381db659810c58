"""The description of the REST interface, made from the endpoints and the types that they take and give."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from storm_on_spark.cluster.http.messages import ErrorBody


@dataclass(frozen=True)
class Endpoint:
    """One of the interface."""

    method: str
    path: str
    """Below the prefix, with parameters in braces."""
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    gives: Any
    """Type of the answer; None if it has no body, `bytes` for a file."""
    takes: Any = None
    """Type of the body; None if there is none, `bytes` for a file."""
    status: int = 200
    name: str | None = None
    """By default that of the handler."""
    query: tuple[str, ...] = ()
    """Parameters of the query, none of which is needed."""


NIMBUS: Final = (
    "Nimbus of Storm on Spark",
    "Storm UI's REST interface, and what a submission needs. Reads are answered by every Nimbus, what changes "
    "something by the leader; other Nimbuses answer 421 with its address.",
)
"""Title and description of a Nimbus's interface."""


def describe(
    endpoints: Sequence[Endpoint], prefix: str, version: str, about: tuple[str, str] = NIMBUS
) -> dict[str, Any]:
    """Returns the description as OpenAPI 3.1 has it.

    Args:
        endpoints: all of them.
        prefix: before each path.
        version: of the interface.
        about: its title and description.
    """
    kinds = [ErrorBody, *(kind for each in endpoints for kind in (each.gives, each.takes) if kind not in (None, bytes))]
    found, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(kinds, found, strict=True))
    paths: dict[str, Any] = {}
    for each in endpoints:
        paths.setdefault(prefix + each.path, {})[each.method.lower()] = _operation(each, schemas)
    title, description = about
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": description},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "user": {"type": "http", "scheme": "digest"},
            },
        },
        "security": [{}, {"token": []}, {"user": []}],
    }


def _operation(each: Endpoint, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    parameters = [(name, "path", True) for name in re.findall(r"{(\w+)}", each.path)]
    parameters += [(name, "query", False) for name in each.query]
    operation: dict[str, Any] = {
        "summary": each.summary,
        "operationId": each.name or each.handler.__name__.lstrip("_"),
        "parameters": [
            {"name": name, "in": where, "required": needed, "schema": {"type": "string"}}
            for name, where, needed in parameters
        ],
        "responses": {
            str(each.status): {"description": "Done", **_content(each.gives, schemas)},
            "default": {"description": "Refused or failed", **_content(ErrorBody, schemas)},
        },
    }
    if each.takes is not None:
        operation["requestBody"] = _content(each.takes, schemas)
    return operation


def _content(kind: Any, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    if kind is None:
        return {}
    if kind is bytes:
        return {"content": {"application/octet-stream": {}}}
    return {"content": {"application/json": {"schema": schemas[kind]}}}
