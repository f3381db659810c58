"""What every page of the REST interface has."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View


class Page(View, frozen=True, kw_only=True):
    """An answer as a whole. Ours: whether it is what was known before ZooKeeper went away, and since when."""

    stale: bool = False
    stale_since: float | None = None
    """Seconds since the epoch."""
    heartbeats_unknown_since: float | None = None
    """Ours: since when nothing is known of any driver's heartbeats, in seconds since the epoch; else null."""
    heartbeats_unknown: str = ""
    """Ours: why."""
