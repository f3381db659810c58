"""The second value of a DRPC spout's tuples: to whom a result is to be sent, as JSON, as in Storm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.errors import FailedException
from storm_on_spark.drpc.addresses import address_of
from storm_on_spark.drpc.connection import Address


def write_return_info(request_id: str, server: Address, *, own_login: bool) -> str:
    """Returns the text.

    Args:
        request_id: of the request.
        server: where its result goes.
        own_login: whether the configuration says nothing of how to log in there.

    Example:
        >>> write_return_info("a1", Address("localhost", 3773), own_login=False)
        '{"id": "a1", "host": "localhost", "port": 3773}'
    """
    login = {"token_file": server.token_file, "ca_file": server.ca_file} if own_login else {}
    return json.dumps({"id": request_id, "host": server.host, "port": server.port, **login})


@dataclass(frozen=True)
class ReturnInfo:
    """What a text says: the request's id, and its server; with files to log in there, if it has any."""

    id: str
    host: str
    port: int
    login: tuple[str | None, str | None] | None = None

    def server(self, conf: Mapping[str, Any]) -> Address:
        """Returns where the result goes; what the text doesn't say of the login, the configuration does."""
        if self.login is None:
            return address_of(conf, self.host, self.port)
        return Address(self.host, self.port, *self.login)


def parse_return_info(text: object) -> ReturnInfo:
    """Returns what a text says.

    Raises:
        FailedException: the text is something else.
    """
    try:
        known: Mapping[str, Any] = json.loads(text) if isinstance(text, str) else {}
        login = (known["token_file"], known["ca_file"]) if "token_file" in known else None
        return ReturnInfo(known["id"], known["host"], known["port"], login)
    except (ValueError, KeyError, TypeError) as error:
        raise FailedException(f"{text!r:.200} says nothing of whom to return a result to: {error}") from error


def read_return_info(text: object, conf: Mapping[str, Any]) -> tuple[str, Address]:
    """Returns the request's id, and where its result goes.

    Raises:
        FailedException: the text is something else.
    """
    found = parse_return_info(text)
    return found.id, found.server(conf)
