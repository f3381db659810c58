"""The description of the REST interface, made from the endpoints and the types that they take and give."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
    takes: Any = None
    """Type of the body; None if there is none, `bytes` for a file."""
    status: int = 200


def describe(endpoints: Sequence[Endpoint], prefix: str, version: str) -> dict[str, Any]:
    """Returns the description as OpenAPI 3.1 has it."""
    types = [ErrorBody, *(kind for each in endpoints for kind in (each.gives, each.takes) if _is_struct(kind))]
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for each in endpoints:
        paths.setdefault(prefix + each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nimbus of Storm on Spark",
            "version": version,
            "description": "Storm UI's REST interface, and what a submission needs. Reads are answered by every "
            "Nimbus, what changes something by the leader; other Nimbuses answer 421 with its address.",
        },
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


def _operation(each: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": each.summary,
        "operationId": each.handler.__name__.lstrip("_"),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", each.path)
        ],
        "responses": {
            str(each.status): {"description": "Done", "content": _content(each.gives)},
            "default": {"description": "Refused or failed", "content": _content(ErrorBody)},
        },
    }
    if each.takes is not None:
        operation["requestBody"] = {"content": _content(each.takes)}
    return operation


def _content(kind: Any) -> dict[str, Any]:
    if kind is bytes:
        return {"application/octet-stream": {}}
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"} if _is_struct(kind) else {"type": "object"}
    return {"application/json": {"schema": schema}}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
