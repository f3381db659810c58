"""One or two Nimbuses, nothing dies."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest
from world import World, wait_for

from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, InvalidTopologyError, NotAliveError
from storm_on_spark.cluster.code.distributor import make_distributor
from storm_on_spark.cluster.errors import CodeError, TransitionError, UnavailableError


def test_from_submission_to_removal(world: World) -> None:
    world.nimbus("a")
    world.idle_supervisor("s")
    client = world.client()
    seen = []
    topology_id = client.submit(world.packed(), "words", {"my.key": 1, "my.password": "hush"}, progress=seen.append)
    assert topology_id.startswith("words-1-")
    assert seen[0].phase == "uploading"
    assert (seen[-1].phase, seen[-1].replicas) == ("submitted", 1)
    owner = world.own(topology_id)
    world.beat(owner, {"status": "ACTIVE", "uptime_secs": 3.0, "emitted": 7})

    (row,) = client.topologies()
    assert (row["id"], row["name"], row["status"], row["owner"]) == (
        topology_id,
        "words",
        "ACTIVE",
        "root" if os.getuid() == 0 else row["owner"],
    )
    assert (row["tasksTotal"], row["executorsTotal"], row["workersTotal"], row["replicationCount"]) == (6, 6, 1, 1)
    page = client.topology("words")
    assert page["configuration"]["my.key"] == 1
    assert "my.password" not in page["configuration"], "secrets are in the artifacts only"
    assert page["configuration"]["topology.checkpoint.dir"] == str(world.folder / "a" / "checkpoints" / topology_id)
    assert [bolt["boltId"] for bolt in page["bolts"]] == ["count", "split"]
    wait_for(lambda: client.topology("words")["driverStatus"] == "ACTIVE", "the beat")
    assert client.component("words", "count")["componentType"] == "bolt"
    with pytest.raises(NotAliveError, match="has no component 'x'; it has: count, sentences, split"):
        client.component("words", "x")

    client.deactivate("words")
    assert world.until(lambda c: c.storms[topology_id].status == "INACTIVE", "inactive")
    client.activate(topology_id)
    assert world.until(lambda c: c.storms[topology_id].status == "ACTIVE", "active")

    client.kill("words", 0)
    world.until(lambda c: topology_id not in c.storms and topology_id not in c.assignments, "killed")
    assert topology_id in world.view.snapshot().code, "its driver may still run"
    world.state.delete_ephemeral("owners", topology_id)
    world.until(lambda c: not c.code and not c.workerbeats, "cleaned up")
    assert client.topologies() == []
    wait_for(lambda: not list((world.folder / "a" / "nimbus" / "code").iterdir()), "code removed")
    with pytest.raises(NotAliveError, match=r"^there is no topology 'words'; there are: none$"):
        client.kill("words")
    assert client.submit(world.packed(), "words", active=False).startswith("words-2-")
    assert client.topologies()[0]["status"] == "INACTIVE"


def test_rebalance(world: World) -> None:
    world.nimbus("a")
    world.idle_supervisor("s")
    client = world.client()
    topology_id = client.submit(world.packed(), "words")
    world.own(topology_id)
    before = world.view.snapshot().assignments[topology_id]
    client.rebalance("words", 0.3, workers=3, executors={"count": 1}, conf={"my.key": 2})
    waiting = world.until(lambda c: c.storms[topology_id].status == "REBALANCING", "rebalancing")
    assert waiting.assignments[topology_id] == before
    for refused in (client.activate, client.deactivate, client.rebalance):
        with pytest.raises(TransitionError, match="it is REBALANCING, not ACTIVE or INACTIVE"):
            refused("words")
    after = world.until(lambda c: c.assignments[topology_id].launch == 2, "launched again")
    base = after.storms[topology_id]
    assert (base.status, base.executors) == ("ACTIVE", {"count": 1})
    assert (base.conf["topology.workers"], base.conf["my.key"]) == (3, 2)
    with pytest.raises(InvalidTopologyError, match='component "count" of topology "words" can have 1 to 2 executors'):
        client.rebalance("words", 0, executors={"count": 3})
    with pytest.raises(ConfigError, match=r'unknown key "topology.worker"'):
        client.rebalance("words", 0, conf={"topology.worker": 3})


def test_what_can_not_be_submitted(world: World) -> None:
    world.nimbus("a")
    client = world.client()
    folder = world.packed()
    client.submit(folder, "words")
    with pytest.raises(AlreadyAliveError, match=r'^topology "words" is ACTIVE already, as words-1-'):
        client.submit(folder, "words")
    with pytest.raises(InvalidTopologyError, match="can't be the name of a topology"):
        client.submit(folder, "a.b")
    with pytest.raises(ConfigError, match=r'^topology "more": unknown key "topology.worker"'):
        client.submit(folder, "more", {"topology.worker": 1})
    (folder / "plan.json").write_text("{}", "utf-8")
    with pytest.raises(Exception, match=r"plan\.json: no plan of a topology"):
        client.submit(folder, "more")
    (folder / "code.zip").unlink()
    with pytest.raises(CodeError, match=r"without code\.zip"):
        client.submit(folder, "more")
    assert len(client.topologies()) == 1
    assert world.view.snapshot().submissions == {}


def test_who_does_not_lead_says_who_does_and_the_client_follows(world: World) -> None:
    a = world.nimbus("a")
    assert world.leader() == a.address
    b = world.nimbus("b")
    topology_id = world.client(b).submit(world.packed(), "words")
    for path in (f"topology/{topology_id}/activate", f"topology/{topology_id}/kill/0"):
        answer = httpx.post(f"http://{b.address}/api/v1/{path}", trust_env=False)
        assert answer.status_code == 421
        assert answer.json() == {
            "error": "Not Leader",
            "errorMessage": f"Nimbus {b.address} isn't the leader; {a.address} is",
            "leader": a.address,
        }
    put = httpx.put(f"http://{b.address}/api/v1/submission/{'0' * 32}/code.zip", content=b"x", trust_env=False)
    assert (put.status_code, put.json()["leader"]) == (421, a.address)
    client = world.client(b)
    client.deactivate("words")
    assert world.until(lambda c: c.storms[topology_id].status == "INACTIVE", "followed")
    summary = [(n["port"], n["status"]) for n in client.nimbuses()]
    assert summary == [(int(a.address[10:]), "Leader"), (int(b.address[10:]), "Not a Leader")]


def test_replicas_are_waited_for(world: World) -> None:
    a = world.nimbus("a")
    client = world.client(a)
    seen = []
    conf = {"topology.min.replication.count": 2, "topology.max.replication.wait.time.sec": -1}
    with pytest.raises(UnavailableError, match="is not complete yet; it continues without this client"):
        client.submit(world.packed(), "words", conf, progress=seen.append, timeout=1)
    assert (seen[-1].phase, seen[-1].replicas, seen[-1].wanted) == ("replicating", 1, 2)
    assert world.view.snapshot().storms == {}
    (key,) = world.view.snapshot().submissions
    with pytest.raises(AlreadyAliveError, match=r'^topology "words" is being submitted already, as words-1-'):
        client.submit(world.packed(), "words")
    world.nimbus("b")
    snapshot = world.until(lambda c: c.storms, "in with the second copy")
    (base,) = snapshot.storms.values()
    assert base.submission_key == key
    assert len(snapshot.code[base.topology_id].replicas) == 2


def test_a_wait_for_replicas_ends(world: World) -> None:
    world.nimbus("a")
    seen = []
    conf = {"topology.min.replication.count": 3, "topology.max.replication.wait.time.sec": 1}
    world.client().submit(world.packed(), "words", conf, progress=seen.append)
    assert (seen[-1].phase, seen[-1].replicas, seen[-1].wanted) == ("submitted", 1, 3)


def test_a_topology_that_completed_is_left_alone(world: World) -> None:
    world.nimbus("a")
    world.idle_supervisor("s", 1)
    client = world.client()
    topology_id = client.submit(world.packed(), "words")
    owner = world.own(topology_id)
    world.beat(owner, {"status": "COMPLETED", "uptime_secs": 3.0})
    world.state.delete_ephemeral("owners", topology_id)
    world.until(lambda c: topology_id not in c.assignments, "its slot is free")
    other = client.submit(world.packed(), "more")
    assert world.until(lambda c: other in c.assignments, "another takes it")
    assert client.topology("words")["driverStatus"] == "COMPLETED"


@pytest.mark.representative
def test_a_supervisor_dies(world: World) -> None:
    world.nimbus("a")
    world.idle_supervisor("s1")
    client = world.client()
    first = client.submit(world.packed(), "first")
    second = client.submit(world.packed(), "second")
    owner = world.own(second)
    assert owner.supervisor_id == "s1"
    world.until(lambda c: first in c.assignments, "assigned")
    world.idle_supervisor("s2")
    world.no_supervisor("s1")
    moved = world.until(lambda c: c.assignments[first].supervisor_id == "s2", "moved")
    assert moved.assignments[second].supervisor_id == "s1", "its driver lives"
    world.state.delete_ephemeral("owners", second)
    world.until(lambda c: c.assignments[second].supervisor_id == "s2", "moved too")


def test_a_driver_that_never_starts_is_tried_elsewhere(world: World) -> None:
    world.nimbus("a", **{"nimbus.task.launch.secs": 1, "nimbus.task.timeout.secs": 100, "nimbus.monitor.freq.secs": 1})
    world.idle_supervisor("s1")
    client = world.client()
    works = client.submit(world.packed(), "works")
    owner = world.own(works)
    world.beat(owner, {"status": "ACTIVE"})
    never = client.submit(world.packed(), "never")
    world.until(lambda c: never in c.assignments, "assigned")
    world.idle_supervisor("s2")
    moved = world.until(lambda c: c.assignments[never].supervisor_id == "s2", "moved")
    assert moved.assignments[works].supervisor_id == "s1", "its driver has beaten"
    world.until(lambda c: c.assignments[never].supervisor_id == "s1", "that was no better, so back again")


def test_code_is_given_out_in_parts(world: World, tmp_path: Path) -> None:
    a = world.nimbus("a")
    folder = world.packed()
    topology_id = world.client().submit(folder, "words")
    content = (folder / "code.zip").read_bytes()
    url = f"http://{a.address}/api/v1/code/{topology_id}/code.zip"
    with httpx.Client(trust_env=False) as http:
        assert http.get(url).content == content
        part = http.get(url, headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, content[10:20])
        assert part.headers["content-range"] == f"bytes 10-19/{len(content)}"
        rest = http.get(url, headers={"Range": "bytes=10-"})
        assert rest.content == content[10:]
        assert http.get(url, headers={"Range": f"bytes={len(content)}-"}).status_code == 416
        for wrong in ("secrets.txt", "..%2f..%2fconf.json", "%2e%2e"):
            missing = http.get(f"http://{a.address}/api/v1/code/{topology_id}/{wrong}")
            assert missing.status_code == 404, wrong
        assert http.get(f"http://{a.address}/api/v1/code/..%2f..%2fx/code.zip").status_code == 404


def test_code_in_a_table_that_all_share(world: World, tmp_path: Path) -> None:
    delta = {"storm.codedistributor.class": "delta", "storm.codedistributor.location": str(tmp_path / "table")}
    world.nimbus("a", **delta)
    first = world.leader()
    world.idle_supervisor("s")
    b = world.nimbus("b", **delta)
    client = world.client()
    topology_id = client.submit(world.packed(), "words")
    world.until(lambda seen: len(seen.code[topology_id].replicas) == 2, "both reach it")
    assert first != b.address
    other = httpx.get(f"http://{b.address}/api/v1/code/{topology_id}/code.zip", trust_env=False)
    assert (other.status_code, other.json()["error"]) == (404, "Not Found"), "it is not the Nimbuses' to give"
    distributor = make_distributor({**world.conf, **delta})
    metafile = world.view.snapshot().code[topology_id].manifest.metafile
    assert distributor.holds(topology_id, metafile)
    client.kill("words", 0)
    world.until(lambda seen: not seen.code, "cleaned up")
    assert not distributor.holds(topology_id, metafile)
    distributor.close()


def test_code_that_nobody_knows_of_is_removed_from_shared_storage(world: World, tmp_path: Path) -> None:
    delta = {"storm.codedistributor.class": "delta", "storm.codedistributor.location": str(tmp_path / "table")}
    distributor = make_distributor({**world.conf, **delta})
    distributor.upload(world.packed(), "left-1-1700000000")
    often = {"nimbus.inbox.jar.expiration.secs": 1, "nimbus.cleanup.inbox.freq.secs": 1, "nimbus.monitor.freq.secs": 1}
    world.nimbus("a", **delta, **often)
    topology_id = world.client().submit(world.packed(), "words")
    wait_for(lambda: "left-1-1700000000" not in distributor.stored(), "what nobody knows of is removed")
    distributor.upload(world.packed(), "late-2-1700000000")
    wait_for(lambda: "late-2-1700000000" not in distributor.stored(), "that goes for what comes later, too")
    assert set(distributor.stored()) == {topology_id}
    distributor.close()
