"""What a Nimbus reports of heartbeats: the store, and whether they are known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PacemakerState:
    """One Pacemaker as a Nimbus sees it."""

    server: str
    away_since: float | None = None
    """Seconds since the epoch; None while it answers."""
    problem: str = ""
    """Why it doesn't."""
    pulses: int = 0
    """How many heartbeats it has."""
    bytes: int = 0
    """The bytes of their values."""
    writes_per_sec: float = 0.0
    """New heartbeats a second, as this Nimbus sees them: of several between two looks, one counts."""
    read_secs: float = 0.0
    """How long the last look took."""
    writers: tuple[str, ...] = ()
    """The latest writers here: `<topology id>/<supervisor id>-<port>`, and paths of supervisors."""


@dataclass(frozen=True)
class Knowledge:
    """What is known of heartbeats as a whole."""

    store: str = "zookeeper"
    unknown_since: float | None = None
    """Seconds since the epoch; None while heartbeats are known."""
    reason: str = ""
    """Why they aren't."""
    pacemakers: tuple[PacemakerState, ...] = ()
