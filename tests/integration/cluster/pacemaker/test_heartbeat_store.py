"""Our writers and readers of heartbeats, against real Pacemakers."""

from __future__ import annotations

import contextlib
import random
import socket
import time

import pytest
from cluster_records import assignment, beat
from waiting import eventually

from storm_on_spark.cluster.errors import PacemakerError, RecordError
from storm_on_spark.cluster.heartbeats.browser import PacemakerBrowser
from storm_on_spark.cluster.heartbeats.connection import Connection
from storm_on_spark.cluster.heartbeats.login import reader_login, writer_login
from storm_on_spark.cluster.heartbeats.pulses import PulseReader
from storm_on_spark.cluster.heartbeats.reader import Beaters, PacemakerReader
from storm_on_spark.cluster.heartbeats.settings import HeartbeatSettings, PacemakerSettings
from storm_on_spark.cluster.heartbeats.values import SupervisorPulse, pack, supervisor_path, unpack, worker_path
from storm_on_spark.cluster.heartbeats.writer import PacemakerWriter, SupervisorPulses
from storm_on_spark.cluster.pacemaker.access import SUPERVISORS_ID
from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse
from storm_on_spark.cluster.pacemaker.server import PacemakerServer
from storm_on_spark.runtime.processes.server import free_ports

pytestmark = pytest.mark.integration

TOKEN = "0123456789abcdef0123"
DEADLINE = 30.0


class Pacemakers:
    """Servers that can be killed, and started again empty at the same port."""

    def __init__(self, count, conf):
        self.conf = conf
        self.ports = free_ports(count)
        self.servers = [None] * count
        for number in range(count):
            self.start(number)
        self.names = [f"127.0.0.1:{port}" for port in self.ports]
        self.logins = HeartbeatSettings.from_conf(conf)
        self.settings = PacemakerSettings(tuple(self.names), timeout_secs=5.0)

    def start(self, number):
        server = PacemakerServer({**self.conf, "pacemaker.port": self.ports[number]})
        server.start()
        self.servers[number] = server

    def stop(self, number):
        server, self.servers[number] = self.servers[number], None
        if server is not None:
            server.close()

    def values(self, number):
        with PulseReader(Connection(self.names[number], self.settings, reader_login(self.logins.login)(""))) as reader:
            return reader.read_tree("/workerbeats")

    def reached_by(self, supervisor, number):
        """What a supervisor's heartbeat at a server says about which servers it reaches."""
        path = supervisor_path(supervisor)
        value = self.values(number).get(path)
        return None if value is None else set(SupervisorPulse.from_bytes(value, path).reaches)

    def close(self):
        for number in range(len(self.ports)):
            self.stop(number)


@pytest.fixture(params=["NONE", "DIGEST"])
def conf(request, tmp_path):
    if request.param == "NONE":
        return {}
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return {
        "pacemaker.auth.method": "DIGEST",
        "pacemaker.auth.payload": "nimbus:its password",
        "nimbus.auth.token.file": str(token),
    }


@pytest.fixture
def pacemakers(conf):
    found = Pacemakers(2, conf)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.representative
def test_a_writer_turns_to_another_server_and_back_to_the_first(pacemakers):
    login = writer_login(pacemakers.logins, "t-1-1")
    with PacemakerWriter(pacemakers.settings, login, random.Random(1)) as writer:
        path = worker_path(beat("t-1-1"))

        def holds(number, at):
            writer.put(beat("t-1-1", at))
            eventually(
                lambda: (value := pacemakers.values(number).get(path)) and unpack(value, path) == beat("t-1-1", at),
                f"server {number} has the heartbeat of {at}",
            )

        writer.put(beat("t-1-1", 1.0))
        eventually(lambda: pacemakers.values(0) or pacemakers.values(1), "some server has it")
        first = 0 if pacemakers.values(0) else 1
        holds(first, 2.0)
        assert not pacemakers.values(1 - first)
        pacemakers.stop(first)
        holds(1 - first, 3.0)
        pacemakers.start(first)

        def is_back():
            writer.put(beat("t-1-1", 4.0))
            return pacemakers.values(first)

        eventually(is_back, "the first is used again")


def test_a_nimbus_reads_all_and_says_what_it_does_not_know(pacemakers):
    shown = {}
    beaters = Beaters(frozenset({"t-1-1"}), frozenset({"t-1-1/a-6700"}), frozenset({"a"}))
    login = reader_login(pacemakers.logins.login)
    reader = PacemakerReader(
        pacemakers.settings,
        lambda server: PulseReader(Connection(server, pacemakers.settings, login(server))),
        lambda: beaters,
        shown.update,
        window=15.0,
    )
    assignments = {"t-1-1": assignment("t-1-1")}
    with (
        PacemakerWriter(pacemakers.settings, writer_login(pacemakers.logins, "t-1-1")) as driver,
        PacemakerWriter(pacemakers.settings, writer_login(pacemakers.logins, "gone-1-1")) as other,
        SupervisorPulses(
            pacemakers.settings, supervisor_path("a"), writer_login(pacemakers.logins, SUPERVISORS_ID)
        ) as supervisor,
    ):
        driver.put(beat("t-1-1", 1.0))
        other.put(beat("gone-1-1"))
        supervisor.put()
        both = set(pacemakers.names)
        eventually(
            lambda: sum(len(pacemakers.values(number)) for number in range(2)) == 4, "two drivers, a pulse at each"
        )
        # Without its thread: a connection is for one thread, and here the test looks.
        with contextlib.closing(reader):
            reader.look()
            assert shown == {"t-1-1": beat("t-1-1", 1.0)}
            known = reader.knowledge()
            assert known.unknown_since is None
            assert {name for state in known.pacemakers for name in state.writers} >= {"t-1-1/a-6700"}
            eventually(
                lambda: all(pacemakers.reached_by("a", number) == both for number in range(2)),
                "the supervisor says that it reaches both",
            )
            reader.look()
            assert reader.unjudged(assignments) == set()
            # One that may be used by drivers doesn't answer: the driver may write there.
            pacemakers.stop(0)
            reader.look()
            assert reader.unjudged(assignments) == {"t-1-1"}
            supervisor.put()
            eventually(lambda: pacemakers.reached_by("a", 1) == {pacemakers.names[1]}, "the supervisor misses it, too")
            eventually(lambda: reader.look() or not reader.unjudged(assignments), "then the silence is its own")
            assert reader.mute() == set()
            driver.put(beat("t-1-1", 2.0))
            eventually(lambda: reader.look() or shown["t-1-1"] == beat("t-1-1", 2.0), "it is heard at the other")
            pacemakers.stop(1)
            reader.look()
            known = reader.knowledge()
            assert known.reason == "no Pacemaker answers"
            assert abs(known.unknown_since - time.time()) < DEADLINE
            assert all(state.away_since is not None for state in known.pacemakers)
            assert shown["t-1-1"] == beat("t-1-1", 2.0)
            for number in range(2):
                pacemakers.start(number)
            reader.forget("t-1-1")
            # First: else what is written now may be deleted with what was there.
            eventually(
                lambda: reader.look() or all(state.away_since is None for state in reader.knowledge().pacemakers),
                "both have answered a look, and have deleted it before",
            )
            driver.put(beat("t-1-1", 3.0))
            eventually(lambda: reader.look() or shown["t-1-1"] == beat("t-1-1", 3.0), "heard again")
            assert reader.knowledge().unknown_since is None


def test_a_supervisor_is_mute_once_it_was_silent_for_a_while(pacemakers):
    """One that has just joined gets its share of topologies, and so does one whose heartbeat came after a look."""
    login = reader_login(pacemakers.logins.login)
    now = [100.0]
    reader = PacemakerReader(
        pacemakers.settings,
        lambda server: PulseReader(Connection(server, pacemakers.settings, login(server))),
        lambda: Beaters(frozenset(), frozenset(), frozenset({"a", "b"})),
        lambda beats: None,
        window=6.0,
        clock=lambda: now[0],
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(reader))
        logins = pacemakers.logins
        pulses = {
            name: stack.enter_context(
                SupervisorPulses(pacemakers.settings, supervisor_path(name), writer_login(logins, SUPERVISORS_ID))
            )
            for name in "ab"
        }

        def look(after, *heard):
            """Looks when new heartbeats of some have arrived everywhere."""
            before = [pacemakers.values(number) for number in range(2)]
            for name in heard:
                pulses[name].put()
            for number in range(2):
                for path in map(supervisor_path, heard):
                    eventually(
                        lambda number=number, path=path: (
                            pacemakers.values(number).get(path) not in (None, before[number].get(path))
                        ),
                        f"{path} has a new value",
                    )
            now[0] += after
            reader.look()
            return reader.mute()

        assert look(0, "a") == set()
        assert look(3, "a") == set(), "b has just joined"
        assert look(3, "a") == {"b"}
        assert look(3, "b") == set(), "and a was late for one look"
        assert look(3, "a", "b") == set()
        assert look(3) == look(30) == set(), "silence that all share is nobody's"


def test_heartbeats_can_be_looked_at(pacemakers):
    with (
        PacemakerBrowser(pacemakers.settings, pacemakers.logins.login) as browser,
        PacemakerWriter(pacemakers.settings, writer_login(pacemakers.logins, "t-1-1")) as writer,
    ):
        assert browser.names("/workerbeats") == []
        assert browser.get("/workerbeats/t-1-1/a-6700") is None
        writer.put(beat("t-1-1", 5.0))
        eventually(lambda: browser.names("/workerbeats") == ["t-1-1"], "it is listed")
        assert browser.names("/workerbeats/t-1-1") == ["a-6700"]
        assert browser.get("/workerbeats/t-1-1/a-6700")["time"] == 5.0
        pacemakers.stop(0)
        pacemakers.stop(1)
        with pytest.raises(PacemakerError, match=r"Pacemaker 127.0.0.1:\d+ can't be used"):
            browser.names("/workerbeats")


def test_what_was_written_for_another_path_is_no_heartbeat(pacemakers):
    path = "/workerbeats/t-1-1/b-6700"
    login = writer_login(pacemakers.logins, "t-1-1")("")
    with Connection(pacemakers.names[0], pacemakers.settings, login) as connection:
        connection.ask([(MessageType.SEND_PULSE, Pulse(path, pack(beat("t-1-1"))))])
    with pytest.raises(RecordError, match="this heartbeat says that it is of"):
        unpack(pacemakers.values(0)[path], path)


def test_with_a_login_a_topology_writes_for_itself_only(pacemakers):
    if not pacemakers.conf:
        pytest.skip("without a login everybody may write")
    login = writer_login(pacemakers.logins, "t-1-1")("")
    another = Pulse("/workerbeats/t-2-1/a-6700", b"x")
    with (
        Connection(pacemakers.names[0], pacemakers.settings, login) as connection,
        pytest.raises(PacemakerError, match="refuses SEND_PULSE: not authorized"),
    ):
        connection.ask([(MessageType.SEND_PULSE, another)])
    with Connection(pacemakers.names[0], pacemakers.settings) as connection, pytest.raises(PacemakerError):
        connection.ask([(MessageType.GET_ALL_NODES_FOR_PATH, "/workerbeats")])


def test_a_server_that_never_answers_costs_a_bounded_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            Connection(name, PacemakerSettings((name,), timeout_secs=0.05)) as connection,
            pytest.raises(PacemakerError, match="has not answered in time"),
        ):
            connection.ask([(MessageType.EXISTS, "/workerbeats")])
