from __future__ import annotations

import random

import cluster_records as made
import pytest
from cluster_records import assignment, beat, manifest, ownership, storm, supervisor
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.client.retry import Retry
from storm_on_spark.cluster.client.settings import ClientSettings
from storm_on_spark.cluster.nimbus.accepting.submission import check_name, is_replicated, name_of, state_of
from storm_on_spark.cluster.nimbus.scheduling.liveness import Drivers, Heartbeats
from storm_on_spark.cluster.records import (
    Submission,
    WorkerBeat,
)
from storm_on_spark.cluster.rest.pages.durations import pretty
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code

KEY = "0" * 32


def submission(**conf) -> Submission:
    return made.submission("words-1-100", conf=conf, submitted_at=100.0, step="replicating")


# --- submissions --------------------------------------------------------------------------------------------


def test_one_copy_is_enough_unless_more_are_asked_for() -> None:
    assert is_replicated(submission(), 1, 100.0)
    assert not is_replicated(submission(), 0, 159.9)
    two = submission(**{"topology.min.replication.count": 2, "topology.max.replication.wait.time.sec": 5})
    assert not is_replicated(two, 1, 104.9)
    assert is_replicated(two, 1, 105.0), "it has waited as long as it may"
    assert is_replicated(two, 2, 100.0)


@given(st.floats(100, 1e12), st.integers(0, 1))
def test_minus_one_waits_for_ever(now: float, replicas: int) -> None:
    for_ever = submission(**{"topology.min.replication.count": 2, "topology.max.replication.wait.time.sec": -1})
    assert not is_replicated(for_ever, replicas, now)


def test_the_state_of_a_submission() -> None:
    code = Code(manifest("words-1-100"), frozenset({"a:1"}))
    under_way = ClusterSnapshot(submissions={KEY: submission()}, code={"words-1-100": code})
    state = state_of(under_way, KEY, 103.0)
    assert state is not None
    assert (state.step, state.replicas, state.wanted, state.waited_secs, state.max_wait_secs) == (
        "replicating",
        1,
        1,
        3.0,
        60,
    )
    base = storm("words-1-100", status="KILLED", submitted_at=100.0, submission_key=KEY)
    done = state_of(ClusterSnapshot(storms={"words-1-100": base}), KEY, 103.0)
    assert done is not None
    assert (done.step, done.replicas) == ("submitted", 0)
    assert state_of(ClusterSnapshot(), KEY, 103.0) is None


@given(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,149}", fullmatch=True), st.integers(1), st.integers(0, 10**10))
def test_the_name_in_an_id(name: str, number: int, seconds: int) -> None:
    assert name_of(f"{check_name(name)}-{number}-{seconds}") == name


@pytest.mark.parametrize("name", ["", "-a", "a b", "a.b", "a/b", "a\n", "ä", "a" * 151, ".."])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InvalidTopologyError, match="can't be the name of a topology: 1 to 150 letters"):
        check_name(name)


# --- heartbeats ---------------------------------------------------------------------------------------------


def test_a_supervisor_that_hangs_is_dead_until_it_beats_again() -> None:
    info = supervisor(heartbeat_at=1e9)
    beats = Heartbeats(60)
    assert set(beats.alive({"a": info}, 0.0)) == {"a"}
    assert set(beats.alive({"a": replace(info, heartbeat_at=5.0)}, 50.0)) == {"a"}, "whatever its clock says"
    still = {"a": replace(info, heartbeat_at=5.0)}
    assert set(beats.alive(still, 109.9)) == {"a"}
    assert set(beats.alive(still, 110.0)) == set()
    assert set(beats.alive({"a": replace(info, heartbeat_at=6.0)}, 111.0)) == {"a"}
    assert set(beats.alive({}, 112.0)) == set()
    assert set(beats.alive(still, 500.0)) == {"a"}, "a new session counts from zero"


def test_a_new_leader_gives_everybody_time() -> None:
    info = {"a": supervisor(heartbeat_at=1.0)}
    beats = Heartbeats(60)
    beats.alive(info, 0.0)
    beats.forget()
    assert set(beats.alive(info, 1000.0)) == {"a"}


# --- the client ---------------------------------------------------------------------------------------------


def test_pauses_between_attempts() -> None:
    retry = Retry.of(ClientSettings.of({"storm.nimbus.retry.times": 3, "storm.nimbus.retry.interval.millis": 100}))
    assert retry == Retry(3, 0.1, 60.0)
    assert Retry.of(ClientSettings.of({})) == Retry(5, 2.0, 60.0)
    pauses = list(Retry(10, 1.0, 5.0).pauses(random.random))
    assert len(pauses) == 10
    assert all(0.5 * most <= pause <= most for pause, most in zip(pauses, [1, 2, 4, *[5] * 7], strict=True))


def test_seeds_have_the_clusters_port_unless_they_say_another() -> None:
    conf = {"nimbus.seeds": ["a", "b:7000", "[::1]:1"], "nimbus.thrift.port": 7001}
    with NimbusClient(conf) as client:
        assert client.seeds == ("a:7001", "b:7000", "[::1]:1")
    with NimbusClient() as client:
        assert client.seeds == ("localhost:6627",)


@given(st.integers(0, 10**7))
def test_durations_can_be_read_back(seconds: int) -> None:
    sizes = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    assert sum(int(part[:-1]) * sizes[part[-1]] for part in pretty(seconds).split()) == seconds


# --- drivers ------------------------------------------------------------------------------------------------


def said(time: float, **fields) -> WorkerBeat:
    return beat("t", time, **{"pid": 7, **fields})


def silent(drivers: Drivers, clock: float, heard: WorkerBeat | None = None, owned_by: int | None = None) -> set[str]:
    beats = {} if heard is None else {"t": heard}
    owners = {} if owned_by is None else {"t": ownership(pid=owned_by)}
    return set(drivers.silent({"t": assignment()}, beats, owners, clock))


def test_a_driver_that_never_beats_is_silent_after_the_time_for_its_start() -> None:
    drivers = Drivers(120, 30)
    assert not silent(drivers, 0.0)
    assert not silent(drivers, 100.0, owned_by=7), "it owns its topology, and starts"
    assert silent(drivers, 120.0, owned_by=7), "which takes too long"


def test_a_driver_that_ran_and_beats_no_more_is_silent_sooner() -> None:
    drivers = Drivers(120, 30)
    for clock in range(0, 100, 3):
        assert not silent(drivers, clock, said(1e9 + clock), 7)
    assert not silent(drivers, 128.9, said(1e9 + 99), 7)
    assert silent(drivers, 129.0, said(1e9 + 99), 7)
    assert not silent(drivers, 130.0, said(5.0), 7), "whatever its clock says"


def test_a_driver_that_died_has_the_time_for_a_start_until_it_beats_again() -> None:
    drivers = Drivers(120, 30)
    assert not silent(drivers, 0.0, said(1.0), 7)
    assert not silent(drivers, 60.0, said(1.0)), "nobody owns it"
    assert not silent(drivers, 119.0, said(1.0), 8), "another driver does, and starts"
    assert silent(drivers, 120.0, said(1.0), 8)
    assert not silent(drivers, 121.0, said(2.0, pid=8), 8)


def test_what_was_said_under_another_assignment_does_not_count() -> None:
    drivers = Drivers(120, 30)
    for other in ({"supervisor_id": "b"}, {"port": 6701}, {"launch": 0}):
        drivers.forget()
        assert not silent(drivers, 0.0, said(1.0, **other), 7)
        assert not silent(drivers, 119.0, said(2.0, **other), 7)
        assert silent(drivers, 120.0, said(3.0, **other), 7)
    moved = replace(assignment(), supervisor_id="b", assigned_at=120.0)
    assert not drivers.silent({"t": moved}, {}, {}, 120.0), "a new assignment is a new start"


def test_a_new_leader_gives_every_driver_time() -> None:
    drivers = Drivers(120, 30)
    assert not silent(drivers, 0.0, said(1.0), 7)
    drivers.forget()
    assert not silent(drivers, 1000.0, said(1.0), 7)
    assert silent(drivers, 1030.0, said(1.0), 7)
