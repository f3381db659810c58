"""Heartbeats: which store, what a Pacemaker is given and gives, who gets a slot, and the benchmark's verdicts."""

from __future__ import annotations

import gzip

import pytest
from cluster_records import assignment, beat, ownership, storm, supervisor
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.pacemaker.measure import Measured
from lab.benchmarks.pacemaker.report import tables, targets
from lab.benchmarks.pacemaker.wire import PacemakerProtocol, path_of
from storm_on_spark.api.config import KEYS, Config, validate_conf
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.heartbeats.settings import STORES, PacemakerSettings, StoreSettings
from storm_on_spark.cluster.heartbeats.values import SupervisorPulse, pack, unpack, worker_path
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers
from storm_on_spark.cluster.nimbus.scheduling.scheduler import schedule
from storm_on_spark.cluster.pacemaker.messages import Message, MessageType, Pulse, decode
from storm_on_spark.cluster.records import MAX_BYTES
from storm_on_spark.cluster.state.newest import Newest, newer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize("name", STORES)
def test_every_store_has_a_name_that_the_configuration_takes(name):
    validate_conf({Config.STORM_CLUSTER_STATE_STORE: name})
    assert StoreSettings.of({Config.STORM_CLUSTER_STATE_STORE: name}).uses_pacemaker is ("ace" in name)


def test_another_store_is_refused_with_those_that_there_are():
    with pytest.raises(ConfigError, match="ZKStateStorageFactory"):
        validate_conf({Config.STORM_CLUSTER_STATE_STORE: "mine"})
    with pytest.raises(ConfigError, match="PaceMakerStateStorageFactory"):
        StoreSettings.of({Config.STORM_CLUSTER_STATE_STORE: "mine"})
    assert KEYS[Config.STORM_CLUSTER_STATE_STORE].default in STORES


@pytest.mark.parametrize("server", ["", ":6699", "p:", "p:x", "p:0", "p:65536"])
def test_a_server_that_is_none_is_refused(server):
    with pytest.raises(ConfigError, match=r"pacemaker\.servers must name hosts"):
        PacemakerSettings.from_conf({"pacemaker.servers": [server]})


def test_pacemaker_without_servers_is_refused():
    with pytest.raises(ConfigError, match=r"pacemaker\.servers names none"):
        PacemakerSettings.from_conf({})


@given(st.dictionaries(TEXT, st.one_of(st.integers(), TEXT)), st.floats(0, 1e10))
def test_what_is_packed_is_unpacked(info, at):
    packed = beat(time=at, info=info)
    assert unpack(pack(packed), worker_path(packed)) == packed


@given(st.binary(max_size=200))
def test_damage_of_any_kind_is_one_error(data):
    for read in (unpack, SupervisorPulse.from_bytes):
        with pytest.raises(RecordError):
            read(data, "/workerbeats/t/a-6700")


def test_a_few_bytes_that_hold_a_great_many_are_refused():
    bomb = gzip.compress(b" " * (50 * MAX_BYTES))
    assert len(bomb) < MAX_BYTES
    with pytest.raises(RecordError, match="a WorkerBeat has at most"):
        unpack(bomb, "/workerbeats/t/a-6700")


def test_of_heartbeats_the_one_that_changed_last_counts_whatever_clocks_say():
    newest = Newest()
    old, new = beat(time=100.0), beat(time=5.0, supervisor_id="b")
    assert newest.look([("p", old)])["t"] == old
    assert newest.look([("p", old), ("q", new)])["t"] == new
    assert newest.look([("p", old), ("q", new)])["t"] == new
    # All servers restart, empty.
    assert newest.look([])["t"] == new
    newest.keep([])
    assert newest.look([]) == {}


def test_last_words_count_before_what_was_said_earlier_and_a_later_launch_before_these():
    said, last = beat(time=9.0), beat(time=8.0, info={"status": "COMPLETED"})
    assert newer(said, last) == newer(last, said) == last
    assert newer(beat(launch=2), last) == beat(launch=2)


def test_a_silent_topology_never_goes_where_nobody_is_heard():
    supervisors = {name: supervisor(name) for name in "abc"}
    at_a = {"t": assignment()}
    storms = {"t": storm("t")}

    def decide(mute):
        return schedule(storms, at_a, supervisors, {"t"}, (), 1, 0.0, silent={"t"}, mute=mute).assign

    assert [each.supervisor_id for each in decide({"a", "b"})] == ["c"]
    assert decide({"a", "b", "c"}) == ()


def test_others_go_where_nobody_is_heard_when_there_is_no_other_slot():
    supervisors = {"a": supervisor("a"), "b": supervisor("b", slots=(6700,))}
    storms = {name: storm(name) for name in ("t1", "t2")}
    found = schedule(storms, {}, supervisors, (), (), 1, 0.0, mute={"a"}).assign
    assert [each.supervisor_id for each in found] == ["b", "a"]


def test_time_in_which_nothing_is_known_counts_for_nobody():
    drivers = Drivers(120, 30)
    at, owner = assignment(), ownership()

    def silent(clock, unjudged=()):
        return set(drivers.silent({"t": at}, {"t": beat()}, {"t": owner}, clock, unjudged))

    assert not silent(0.0)
    assert not silent(29.0)
    assert not silent(40.0, {"t"})
    assert not silent(69.0)
    assert silent(70.0) == {"t"}


def test_the_generator_writes_what_storm_reads():
    before, behind = PacemakerProtocol().beat(path_of(7), 100)
    message = decode((before + b"x" * 100 + behind)[4:])
    assert message == Message(MessageType.SEND_PULSE, Pulse(path_of(7), b"x" * 100), 0)


def measured(contender="ours", **more):
    fields = {
        "contender": contender, "supervisors": 2700, "size": 2000, "due_per_sec": 3600.0, "written_per_sec": 3600.0,
        "megabit_per_sec": 60.0, "cpu": 0.2, "micros_per_write": 50.0, "resident_mib": 100.0, "values_mib": 20.0,
        "p50": 0.001, "p99": 0.01, "read_secs": None, "lag_p99": 0.001, "sustained": True,
    }  # fmt: skip
    return Measured(**{**fields, **more})


@pytest.mark.parametrize(
    "worse", [{"cpu": 0.71}, {"resident_mib": 171.0}, {"p99": 0.021}, {"p99": None}, {"sustained": False}]
)
def test_each_target_can_be_missed(worse):
    assert all(met for _, met, _ in targets([measured(), measured("Storm")]))
    assert not all(met for _, met, _ in targets([measured(**worse)]))
    assert "**no**" in tables([measured(**worse)])


def test_storm_is_a_target():
    assert not all(met for _, met, _ in targets([measured(), measured("Storm", supervisors=4500)]))
