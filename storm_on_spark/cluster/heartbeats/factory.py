"""Makes the reader for the store that the configuration names."""

from __future__ import annotations

from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.reader import Beaters, HeartbeatReader, PacemakerReader, ZooKeeperReader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings
from storm_on_spark.cluster.heartbeats.values import worker_name
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot
from storm_on_spark.cluster.state.view import ClusterView


def heartbeat_reader(settings: HeartbeatSettings, view: ClusterView, window: float) -> HeartbeatReader:
    """Returns a Nimbus' reader of heartbeats.

    Args:
        settings: its own.
        view: the watched copy of ZooKeeper; it shows the heartbeats, too.
        window: as for `Hearing`.

    Raises:
        SetupError: the settings name no user to log in as.
    """
    pacemakers = settings.pacemakers
    if pacemakers is None:
        return ZooKeeperReader()
    login = reader_login(settings.login)
    return PacemakerReader(
        pacemakers,
        lambda server: PulseReader(Connection(server, pacemakers, login(server))),
        lambda: beaters(view.snapshot()),
        view.set_beats,
        window,
    )


def beaters(snapshot: ClusterSnapshot) -> Beaters:
    """Returns the writers that should beat, according to ZooKeeper."""
    return Beaters(
        frozenset(snapshot.storms) | frozenset(snapshot.unread("storms")),
        frozenset(worker_name(at.topology_id, at.supervisor_id, at.port) for at in snapshot.assignments.values()),
        frozenset(snapshot.supervisors),
    )
