"""The clients of one Pacemaker server, and what their connections share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from storm_on_spark.cluster.http.limits import group_of
from storm_on_spark.cluster.pacemaker.heartbeats import Heartbeats
from storm_on_spark.cluster.pacemaker.login.kerberos import KerberosServer
from storm_on_spark.cluster.pacemaker.login.server import Gate
from storm_on_spark.cluster.pacemaker.metrics import Metrics
from storm_on_spark.cluster.pacemaker.operations import Operations
from storm_on_spark.cluster.pacemaker.settings import Limits, ServerSettings

logger = logging.getLogger(__name__)

_CLOSE_TURNS: Final = 100


class Client(Protocol):
    """A connection, as far as the server as a whole deals with it."""

    address: str

    def overdue(self, now: float) -> str | None:
        """Returns why it has to be closed at `now`; None if it hasn't."""

    def drop(self, why: str) -> None:
        """Closes it and logs why."""

    def abort(self) -> None:
        """Closes it at once."""


class Clients:
    """The connections of one server, and what they share. Only its event loop touches it.

    Args:
        settings: the server's.
        now: monotonic seconds.
    """

    def __init__(self, settings: ServerSettings, now: Callable[[], float] = time.monotonic) -> None:
        self.limits: Limits = settings.limits
        self.now = now
        self.metrics = Metrics()
        self.beats = Heartbeats(settings.quota, settings.expiry_secs)
        self.operations = Operations(self.beats, settings.rules, self.metrics, settings.limits.message_bytes)
        self._settings = settings
        self._kerberos = None if settings.kerberos is None else KerberosServer(settings.kerberos)
        self._connections: set[Client] = set()
        #: How many connections each address has; those that have none are not in it.
        self._by_address: dict[str, int] = {}
        self._gauges()

    def gate(self, address: str) -> Gate:
        """Returns a new connection's login."""
        begin = None if self._kerberos is None else self._kerberos.begin
        return Gate(self._settings.rules.method, self._settings.daemon, self._settings.tokens, begin, group_of(address))

    def enter(self, connection: Client) -> bool:
        """Takes a connection in; whether there is a place for it."""
        group = group_of(connection.address)
        mine = self._by_address.get(group, 0)
        if len(self._connections) >= self.limits.connections or mine >= self.limits.by_address:
            self.metrics.count("pacemaker_connections_refused_total")
            logger.warning("refused address=%s reason='too many connections'", connection.address)
            return False
        self._connections.add(connection)
        self._by_address[group] = mine + 1
        self.metrics.count("pacemaker_connections_total")
        return True

    def leave(self, connection: Client) -> None:
        """Gives a place back."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        group = group_of(connection.address)
        self._by_address[group] -= 1
        if not self._by_address[group]:
            del self._by_address[group]

    def sweep(self) -> None:
        """Closes the connections, and removes the heartbeats, whose time is over."""
        now = self.now()
        for connection in list(self._connections):
            why = connection.overdue(now)
            if why is not None:
                connection.drop(why)
        expired = self.beats.expire(now)
        if expired:
            self.metrics.count("pacemaker_heartbeats_expired_total", expired)
            logger.info("expired heartbeats=%d", expired)

    async def close(self) -> None:
        """Closes all connections; returns when they have ended."""
        for _ in range(_CLOSE_TURNS):
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
            if not self._connections:
                return

    def _gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("pacemaker_keys", "Paths kept. Storm: pacemaker:size-total-keys", lambda: len(self.beats))
        gauge("pacemaker_kept_bytes", "Memory of all heartbeats, about.", lambda: self.beats.size)
        gauge("pacemaker_clients", "Clients that keep any.", lambda: len(self.beats.owners()))
        gauge("pacemaker_connections", "Connections open.", lambda: len(self._connections))
