"""Limits of connections as a state machine: events in, connections to close out. No I/O, no clock.

A connection costs a server something before the client is authenticated. So one that has not sent a whole request
head by a deadline is closed, however slowly its bytes come. There is a limit per address and one for all connections.
Above a limit, the connection that has been idle longest is closed, of the address that has most idle connections. A
body that comes more slowly than `LEAST_RATE` counts as idle time too. A request that has come whole is never broken off
for another.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True)
class Limits:
    """The limits of one server."""

    connections: int = 256
    by_address: int = 128
    """Less than all: no single address can take every place."""
    head_bytes: int = 16 * 1024
    head_secs: float = 10.0
    """From the connection, or from the first byte of a later request, to the end of the request's head."""
    idle_secs: float = 30.0
    """Between an answer and the next request."""
    write_secs: float = 60.0
    """Without an answer getting on that the other side doesn't read."""


DEFAULT: Final = Limits()
LEAST_RATE: Final = 4096
"""Bytes a second of a long body, on average."""

Phase = Literal["head", "body", "busy", "idle"]


@dataclass
class _Place:
    address: str
    phase: Phase
    since: float
    """When the phase began; of a body, as much later as what has come of it takes at `LEAST_RATE`."""


class ConnectionLimits:
    """The connections of one server.

    Example:
        >>> places = ConnectionLimits(Limits(connections=3, by_address=2))
        >>> places.enter(1, "10.0.0.1", 0.0), places.enter(2, "10.0.0.1", 1.0), places.busy(1, 1.5)
        (True, True, None)
        >>> places.enter(3, "10.0.0.1", 2.0), places.to_close()  # the second had said nothing yet
        (True, [2])
        >>> places.busy(3, 3.0), places.enter(4, "10.0.0.1", 4.0), places.enter(5, "10.0.0.2", 5.0)
        (None, False, True)
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._limits = limits
        self._places: dict[int, _Place] = {}
        self._close: list[int] = []

    def enter(self, connection: int, address: str, now: float) -> bool:
        """Takes a connection in; whether there is a place for it. `to_close` tells what had to make room."""
        group = group_of(address)
        mine = [place for place in self._places.values() if place.address == group]
        if len(mine) >= self._limits.by_address and not self._make_room(group):
            return False
        if len(self._places) >= self._limits.connections:
            idle: dict[str, int] = {}
            for place in self._places.values():
                if place.phase != "busy":
                    idle[place.address] = idle.get(place.address, 0) + 1
            if not idle or not self._make_room(max(idle, key=lambda name: idle[name])):
                return False
        self._places[connection] = _Place(group, "head", now)
        return True

    def body(self, connection: int, received: int, now: float) -> None:
        """Notes how many bytes of a request have been received while its body is incomplete."""
        place = self._places.get(connection)
        if place is None:
            return
        if place.phase == "body":
            now = min(now, place.since + received / LEAST_RATE)
        self._change(connection, "body", now)

    def busy(self, connection: int, now: float) -> None:
        """Notes that a request has come whole, and is being answered."""
        self._change(connection, "busy", now)

    def idle(self, connection: int, now: float) -> None:
        """Notes that it has been answered."""
        self._change(connection, "idle", now)

    def heard(self, connection: int, now: float) -> None:
        """Notes that something of a request came, but no whole head yet."""
        place = self._places.get(connection)
        if place is not None and place.phase == "idle":
            self._change(connection, "head", now)

    def leave(self, connection: int) -> None:
        """Notes that a connection has ended."""
        self._places.pop(connection, None)

    def deadline(self, connection: int) -> float | None:
        """Returns when a connection is to be closed if nothing happens; None in a body, while busy, or not here.

        The reader of a body has its own time limit.
        """
        place = self._places.get(connection)
        if place is None or place.phase in ("body", "busy"):
            return None
        return place.since + (self._limits.head_secs if place.phase == "head" else self._limits.idle_secs)

    def to_close(self) -> list[int]:
        """Returns what is to be closed, once."""
        found, self._close = self._close, []
        return found

    def _change(self, connection: int, phase: Phase, now: float) -> None:
        place = self._places.get(connection)
        if place is not None:
            place.phase, place.since = phase, now

    def _make_room(self, group: str) -> bool:
        """Closes the connection of an address that has been useless for longest."""
        idle = [
            (place.since, number)
            for number, place in self._places.items()
            if place.address == group and place.phase != "busy"
        ]
        if not idle:
            return False
        _, victim = min(idle)
        del self._places[victim]
        self._close.append(victim)
        return True


def group_of(address: str) -> str:
    """Returns whom an address stands for: one host of IPv6 has a whole /64.

    Example:
        >>> group_of("192.0.2.7"), group_of("2001:db8:1:2:3::4"), group_of("::ffff:192.0.2.7"), group_of("")
        ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', '')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        if not found.is_loopback:
            return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
