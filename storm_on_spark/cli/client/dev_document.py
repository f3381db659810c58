"""The contents of the file that `dev_record` finds."""

from __future__ import annotations

from storm_on_spark.cluster.records import Record


class DevRecord(Record, frozen=True):
    """A `storm-spark dev` that is ready."""

    pid: int
    seeds: tuple[str, ...]
    """`host:port` of its Nimbuses."""
    token_file: str
    zookeeper: str
    """`host:port`."""
    folder: str
    """The folder of all its files, which is removed when it ends."""
    started_at: float
    """Seconds since the epoch."""
    admin: str | None = None
    """URL of its admin of streams, if it has one."""
