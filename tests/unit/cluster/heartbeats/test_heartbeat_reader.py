"""What a Nimbus concludes from what it reads, with a real Pacemaker and a clock that the test sets."""

from __future__ import annotations

import pytest
from cluster_records import assignment, beat, ownership

from storm_on_spark.cluster.errors import PacemakerError
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.reader import Beaters, PacemakerReader
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import pack, worker_name, worker_path
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers
from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.testing.servers.pacemaker_client import RawClient


def test_a_host_whose_name_is_none_is_a_pacemaker_that_is_away():
    settings = PacemakerSettings.from_conf({"pacemaker.servers": ["a" * 64 + ".example"]})
    with (
        Connection(settings.servers[0], settings) as connection,
        pytest.raises(PacemakerError, match=r"can't be used: .*idna"),
    ):
        connection.ask([(MessageType.EXISTS, "/a")])


def test_time_that_everyone_was_silent_counts_for_nobody_also_between_two_rounds_of_a_leader():
    """A leader looks every `nimbus.monitor.freq.secs`, which may be long; heartbeats are read more often."""
    now = [0.0]
    shown = {}
    names = ("t1", "t2")
    assignments = {name: assignment(name) for name in names}
    owners = {name: ownership(name) for name in names}
    beaters = Beaters(frozenset(names), frozenset(worker_name(name, "a", 6700) for name in names))
    drivers = Drivers(launch=120, timeout=30)
    with PacemakerServer({}, port=0) as server, RawClient(server.port) as writer:
        settings = PacemakerSettings((server.address,), timeout_secs=30.0)

        def write(*topologies):
            for name in topologies:
                found = beat(name, now[0])
                writer.ask(MessageType.SEND_PULSE, Pulse(worker_path(found), pack(found)))

        def round_of_leader():
            unjudged = reader.unjudged(assignments)
            return drivers.silent(assignments, shown, owners, now[0], unjudged).keys()

        reader = PacemakerReader(
            settings,
            lambda name: PulseReader(Connection(name, settings)),
            lambda: beaters,
            shown.update,
            window=15.0,
            clock=lambda: now[0],
        )
        try:
            write(*names)
            reader.look()
            assert not round_of_leader()
            for now[0] in (10.0, 20.0, 30.0, 40.0):
                reader.look()
            now[0] = 41.0
            write("t1")
            reader.look()
            assert not round_of_leader(), "until now nobody could be heard"
            for now[0] in (50.0, 60.0, 70.0):
                write("t1")
                reader.look()
                assert not round_of_leader()
            now[0] = 71.0
            write("t1")
            reader.look()
            assert round_of_leader() == {"t2"}, "then its silence is its own"
        finally:
            reader.close()
