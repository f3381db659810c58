"""Makes what reads heartbeats, as a configuration says who keeps them."""

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
    """Returns what a Nimbus knows heartbeats by.

    Args:
        settings: its own.
        view: the watched copy of ZooKeeper; it shows the heartbeats, too.
        window: as for `Hearing`.

    Raises:
        SetupError: they don't say by which name it logs in.
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
    """Returns who should beat, as far as ZooKeeper knows."""
    return Beaters(
        frozenset(snapshot.storms) | frozenset(snapshot.unread("storms")),
        frozenset(worker_name(at.topology_id, at.supervisor_id, at.port) for at in snapshot.assignments.values()),
        frozenset(snapshot.supervisors),
    )
