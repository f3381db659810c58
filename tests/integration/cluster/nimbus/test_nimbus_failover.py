"""Nimbuses die, hang, and lose their connections."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import httpx
import pytest
from lengths import PATIENCE_SECS
from world import World, wait_for

from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.testing.simulated.process import DaemonProcess


def _port(nimbus: DaemonProcess) -> int:
    return int(nimbus.name.rpartition(":")[2])


STEPS = ("received", "storing", "uploaded", "replicating", "replicated", "activated", "assigned")
REPLICAS = {"topology.min.replication.count": 2, "topology.max.replication.wait.time.sec": 30}


def test_who_lacks_code_does_not_lead_until_it_has_fetched_it(world: World) -> None:
    """The design's scenario: A, B and C, two copies of each of t1 to t4, and neither B nor C has all when A dies."""

    def let_fetch(nimbus: DaemonProcess, *names: str) -> None:
        folder = nimbus.folder / "may-fetch"
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).touch()

    world.idle_supervisor("s1")
    world.idle_supervisor("s2")
    a = world.nimbus_process("a")
    world.leader()
    choosy = {
        "storm.codedistributor.class": "storm_on_spark.testing.simulated.choosy:ChoosyDistributor",
        "nimbus.code.sync.freq.secs": 1,
    }
    b, c = (world.nimbus_process(name, **choosy) for name in "bc")
    let_fetch(b, "t3", "t4")
    let_fetch(c, "t1", "t2")
    client = world.client(a, b, c)
    ids = [client.submit(world.packed(f"t{i}"), f"t{i}", REPLICAS) for i in range(1, 5)]
    spread = [{a.name, other.name} for other in (c, c, b, b)]
    before = world.until(
        lambda seen: [seen.code[t].replicas for t in ids] == spread and set(ids) <= set(seen.assignments), "two of each"
    )
    for topology_id in ids:
        world.own(topology_id)
    a.kill()
    lacks = "can't lead: it lacks the code of"
    for nimbus in (b, c):
        wait_for(lambda nimbus=nimbus: lacks in nimbus.said, "its turn came, and it gave it up")
        assert "leads from now on" not in nimbus.said
    world.until(lambda seen: seen.leader is None, "nobody leads")
    missing = {_port(b): sorted(ids[:2]), _port(c): sorted(ids[2:])}
    wait_for(
        lambda: {each["port"]: each["missingCode"] for each in client.nimbuses()} == missing,
        "everybody can see why",
    )
    for nimbus in (b, c):
        let_fetch(nimbus, "t1", "t2", "t3", "t4")
    after = world.until(lambda seen: seen.leader is not None, "a leader")
    assert after.leader is not None
    leader = b if after.leader.address == b.name else c
    assert {
        entry.name for entry in (leader.folder / "nimbus" / "code").iterdir() if not entry.name.startswith(".")
    } == set(ids)
    after = world.until(lambda seen: all(len(seen.code[t].replicas) == 2 for t in ids), "two of each again")
    client.deactivate("t1")
    assert after.assignments == before.assignments, "no topology is restarted by it"
    assert {base.launch for base in after.storms.values()} == {1}


@pytest.mark.parametrize("step", STEPS)
def test_the_leader_dies_in_a_submission(world: World, step: str) -> None:
    world.idle_supervisor("s1")
    a = world.nimbus_process("a")
    assert world.leader() == a.name
    a.arm(step, "kill")
    others = [world.nimbus(name) for name in "bc"]
    client = world.client(a, *others)
    # With one copy only, what is in may be on the disk of the dead alone: then nobody leads until it is back.
    topology_id = client.submit(world.packed(), "words", REPLICAS)
    assert a.wait() == -signal.SIGKILL, "the fault happened"
    assert f"step {step} of" in a.said
    world.until(lambda seen: topology_id in seen.assignments, "assigned")
    seen = world.view.snapshot()
    assert list(seen.storms) == [topology_id], "once, not twice"
    assert seen.storms[topology_id].launch == seen.assignments[topology_id].launch == 1
    wait_for(lambda: not world.view.snapshot().submissions, "nothing half done is left")
    world.until(lambda seen: set(seen.code) == {topology_id}, "nor code of it")
    left = {other.address for other in others}
    world.until(lambda seen: seen.leader is not None and seen.leader.address in left, "another leads")
    world.until(lambda seen: seen.code[topology_id].replicas == left, "two copies")


def test_the_only_copy_of_a_submission_comes_back(world: World) -> None:
    a = world.nimbus_process("a")
    world.leader()
    a.arm("replicating", "kill")
    b = world.nimbus_process("b")
    b.name  # noqa: B018 # it is up
    b.pause()
    failed: list[BaseException] = []

    def submit() -> None:
        try:
            world.client(a, **{"storm.nimbus.retry.times": 0}).submit(world.packed(), "words")
        except UnavailableError as error:
            failed.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    assert a.wait() == -signal.SIGKILL
    thread.join()
    assert failed, "nobody has told the client that it is in"
    b.resume()
    world.until(lambda seen: seen.leader is not None and seen.leader.address == b.name, "B leads")
    assert world.view.snapshot().storms == {}
    again = world.nimbus_process("a")
    snapshot = world.until(lambda seen: seen.storms, "completed with A's copy")
    (topology_id,) = snapshot.storms
    world.until(lambda seen: seen.code[topology_id].replicas == {again.name, b.name}, "copied")


def test_a_new_leader_comes_soon_and_finishes_what_is_due(world: World) -> None:
    a = world.nimbus_process("a")
    world.idle_supervisor("s1")
    world.leader()
    b = world.nimbus("b")
    client = world.client(a, b)
    killed = client.submit(world.packed(), "killed", REPLICAS)
    moved = client.submit(world.packed(), "moved", REPLICAS)
    world.until(lambda seen: moved in seen.assignments, "assigned")
    client.kill("killed", 1)
    client.rebalance("moved", 1)
    a.kill()
    began = time.monotonic()
    world.until(lambda seen: seen.leader is not None and seen.leader.address == b.address, "B leads")
    assert time.monotonic() - began < 2 + PATIENCE_SECS, "session timeout and a while"
    world.until(lambda seen: killed not in seen.storms and killed not in seen.code, "killed and cleaned up")
    world.until(lambda seen: seen.assignments[moved].launch == 2, "launched again")


@pytest.mark.representative
def test_a_leader_that_slept_changes_nothing(world: World) -> None:
    a = world.nimbus_process("a")
    world.idle_supervisor("s1")
    world.leader()
    b = world.nimbus("b")
    client = world.client(b)
    topology_id = client.submit(world.packed(), "words", REPLICAS)
    world.until(lambda seen: topology_id in seen.assignments, "assigned")
    a.pause()
    # What A would do as soon as it wakes up: it was asked before it slept too long.
    asked: list[httpx.Response] = []
    thread = threading.Thread(
        target=lambda: asked.append(
            httpx.post(f"http://{a.name}/api/v1/topology/{topology_id}/kill/0", trust_env=False, timeout=30)
        )
    )
    thread.start()
    world.until(lambda seen: seen.leader is not None and seen.leader.address == b.address, "B leads")
    before = world.view.snapshot()
    a.resume()
    thread.join()
    assert asked[0].status_code in (421, 503), asked[0].text
    wait_for(lambda: world.client(a).cluster()["stale"] is False, "A is back")
    after = world.view.snapshot()
    assert (after.storms, after.assignments) == (before.storms, before.assignments)
    assert world.client(a).nimbuses()[0]["port"] == int(b.address.rpartition(":")[2])


def test_reads_are_answered_while_zookeeper_is_away(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        world = World(server.connect_string, tmp_path)
        try:
            world.idle_supervisor("s1")
            a = world.nimbus_process("a")
            client = world.client(a, **{"storm.nimbus.retry.times": 1})
            topology_id = world.client(a).submit(world.packed(), "words")
            server.kill()
            wait_for(lambda: client.cluster()["stale"], "stale")
            page = client.topology("words")
            assert (page["stale"], page["id"], page["status"]) == (True, topology_id, "ACTIVE")
            assert abs(page["staleSince"] - time.time()) < 60
            assert client.errors("words") == {}
            with pytest.raises(UnavailableError, match="doesn't lead, and there is no other leader that it knows of"):
                client.deactivate("words")
            server.start()
            wait_for(lambda: not client.cluster()["stale"], "up to date again")
            patient = world.client(a)
            patient.deactivate("words")
            # What is watched here may not have seen the topology before ZooKeeper was away.
            world.until(lambda seen: [storm.status for storm in seen.storms.values()] == ["INACTIVE"], "it leads again")
        finally:
            world.close()


@pytest.mark.parametrize("hours", [pytest.param(-24.0, marks=pytest.mark.soak), 24.0])
def test_a_deadline_stays_where_it_was_whatever_the_next_leaders_clock_says(world: World, hours: float) -> None:
    world.idle_supervisor("s1")
    # Both are wrong, by different amounts; ZooKeeper's clock is the only one that counts.
    first = Nimbus({**world.conf, "storm.local.dir": str(world.folder / "a")}, 0, now=lambda: time.time() - 3600.0)
    second = Nimbus(
        {**world.conf, "storm.local.dir": str(world.folder / "b")}, 0, now=lambda: time.time() + hours * 3600.0
    )
    with first:
        assert world.leader() == first.address
        with second:
            client = world.client(first, second)
            topology_id = client.submit(world.packed(), "words", REPLICAS)
            began = time.monotonic()
            client.kill("words", 6.0)
            first.stop()
            world.until(lambda seen: seen.leader is not None and seen.leader.address == second.address, "the second")
            assert topology_id in world.view.snapshot().storms, "not before its time"
            world.until(lambda seen: topology_id not in seen.storms, "the end")
            # How much later depends on the machine; a day would be too late for `until`.
            assert time.monotonic() - began > 5.0
