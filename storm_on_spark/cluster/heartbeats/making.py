"""Makes what reads heartbeats, as a configuration says who keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.reader import Beaters, HeartbeatReader, PacemakerReader, ZooKeeperReader
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings, uses_pacemaker
from storm_on_spark.cluster.heartbeats.values import worker_name
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot
from storm_on_spark.cluster.state.view import ClusterView


def heartbeat_reader(conf: Mapping[str, Any], view: ClusterView, window: float) -> HeartbeatReader:
    """Returns what a Nimbus knows heartbeats by.

    Args:
        conf: its configuration.
        view: the watched copy of ZooKeeper; it shows the heartbeats, too.
        window: as for `Hearing`.

    Raises:
        ConfigError: it says nothing that makes sense.
    """
    if not uses_pacemaker(conf):
        return ZooKeeperReader()
    settings, login = PacemakerSettings.from_conf(conf), reader_login(conf)
    return PacemakerReader(
        settings,
        lambda server: PulseReader(Connection(server, settings, login(server))),
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
