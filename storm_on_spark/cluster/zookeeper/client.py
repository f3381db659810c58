"""kazoo's client with what a session here needs: see `KazooClient` for the rest."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import socket
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cluster.zookeeper.settings import ZooKeeperSettings

_RECONNECT_SECS: Final = 0.1
_RECONNECT_MAX_SECS: Final = 1.0
"""Most between two attempts: a server that is back is found at once, and a thousand clients don't storm it."""

_logger = logging.getLogger("storm_on_spark.cluster.zookeeper.kazoo")
# At DEBUG kazoo logs requests whole, passwords among them.
if _logger.level == logging.NOTSET:
    _logger.setLevel(logging.INFO)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Threads of kazoo's that give a host up that doesn't answer, while there still is time to try another."""

    def __init__(self, connect_timeout: float) -> None:
        super().__init__()
        self._connect_timeout = connect_timeout

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = min(kwargs["timeout"], self._connect_timeout)
        return super().create_connection(*args, **kwargs)


class Client(KazooClient):  # type: ignore[misc]
    """A client of ZooKeeper.

    Args:
        settings: which ZooKeeper.
        acl: of the nodes that it makes; None for ZooKeeper's open one.
    """

    negotiated_timeout: float
    """Seconds for which the server keeps the session without a word from us. It may grant less than was asked for."""

    def __init__(self, settings: ZooKeeperSettings, acl: list[Any] | None) -> None:
        super().__init__(
            hosts=settings.hosts,
            timeout=settings.session_timeout_secs,
            default_acl=acl,
            auth_data=[("digest", settings.auth_payload)] if settings.auth_scheme == "digest" else None,
            sasl_options=_sasl(settings),
            connection_retry=KazooRetry(max_tries=-1, delay=_RECONNECT_SECS, max_delay=_RECONNECT_MAX_SECS),
            handler=_Handler(_patience(settings)),
            logger=_logger,
        )
        self.negotiated_timeout = settings.session_timeout_secs
        connect = self._connection._connect  # noqa: SLF001

        def and_note_timeout(host: str, address: str, port: int) -> tuple[float, float]:
            # kazoo does not publish the granted timeout; its reads time out after two thirds of it.
            read_timeout, connect_timeout = connect(host, address, port)
            self.negotiated_timeout = read_timeout * 3 / 2 / 1000
            return read_timeout, connect_timeout

        self._connection._connect = and_note_timeout  # noqa: SLF001
        invoke = self._connection._invoke  # noqa: SLF001

        def answered_soon(timeout: float, request: Any, xid: int | None = None) -> Any:
            # A server that is just starting, or hangs, takes a connection and may never say a word. With a single
            # server kazoo would wait for as long as a session lives.
            return invoke(min(timeout, _patience(settings)), request, xid)

        self._connection._invoke = answered_soon  # noqa: SLF001

    def drop_connection(self) -> None:
        """Breaks the connection; kazoo notices at once and makes another, with the same session if it still lives."""
        connection = self._connection._socket  # noqa: SLF001
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _sasl(settings: ZooKeeperSettings) -> dict[str, str] | None:
    """Returns how to log in by SASL; None for not at all."""
    if settings.auth_scheme != "sasl" or settings.auth_payload is None:
        return None
    if importlib.util.find_spec("puresasl") is None:
        raise SetupError(needs_extra(f"{Config.STORM_ZOOKEEPER_AUTH_SCHEME}: sasl", "cluster", "pure-sasl"))
    user, _, password = settings.auth_payload.partition(":")
    return {"mechanism": "DIGEST-MD5", "username": user, "password": password}


def _patience(settings: ZooKeeperSettings) -> float:
    """Returns for how long a server may keep its client waiting while they connect, in seconds."""
    return max(1.0, settings.session_timeout_secs / 3)
