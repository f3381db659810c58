from __future__ import annotations

import threading
from collections import Counter, deque

import pytest
from cluster_records import assignment, beat, manifest, ownership, storm, supervisor
from fences import lead
from waiting import eventually

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.paths import (
    ASSIGNMENTS,
    CODE,
    LEADER_INFO,
    NIMBUSES,
    OWNERS,
    STORM,
    STORMS,
    SUPERVISORS,
    WORKERBEATS,
)
from storm_on_spark.cluster.records import (
    NimbusSummary,
)
from storm_on_spark.cluster.state import ClusterState, ClusterView, Create, Delete, Put
from storm_on_spark.testing.faults.connections import TcpProxy, expire_session


@pytest.mark.representative
def test_every_change_arrives(connect) -> None:
    state, watcher = ClusterState(connect()), connect()
    changes: deque[frozenset[str]] = deque()
    with ClusterView(watcher) as view:
        view.on_change(changes.append)
        assert view.stale is None
        assert view.snapshot().leader is None
        fence = lead(state.session, "h:1")
        seen = view.wait_for(lambda cluster: cluster.leader, 60)
        assert seen is not None
        assert seen.leader is not None
        assert (seen.leader.address, seen.leader.epoch) == ("h:1", fence.epoch)

        state.commit(
            fence,
            Create((STORMS, "t"), storm("t")),
            Create((ASSIGNMENTS, "t"), assignment("t")),
            Create((CODE, "t"), manifest("t")),
        )
        state.create_ephemeral(NimbusSummary(host="h", port=1, started_at=0.0, version="1"), NIMBUSES, "h:1")
        state.create_ephemeral(supervisor("a"), SUPERVISORS, "a")
        state.create_ephemeral(b"", CODE, "t", "h:1")
        state.take_ownership(ownership("t"), 0)
        state.put_beat(beat("t"))
        full = view.wait_for(
            lambda cluster: (
                cluster.storms
                and cluster.assignments
                and cluster.nimbuses
                and cluster.supervisors
                and cluster.owners
                and cluster.workerbeats
                and cluster.code
                and cluster.code["t"].replicas
            ),
            5,
        )
        assert full is not None
        assert full.storms == {"t": storm("t")}
        assert full.assignments == {"t": assignment("t")}
        assert full.owners == {"t": ownership("t")}
        assert full.workerbeats == {"t": beat("t")}
        assert full.supervisors == {"a": supervisor("a")}
        assert full.code["t"].manifest == manifest("t")
        assert full.code["t"].replicas == {"h:1"}
        assert full.versions[ASSIGNMENTS] == {"t": 0}
        assert not full.problems

        state.commit(fence, Put((STORMS, "t"), storm("t", status="INACTIVE")))
        assert view.wait_for(lambda cluster: cluster.storms["t"].status == "INACTIVE", 60)
        assert view.snapshot().versions[STORMS] == {"t": 1}
        state.delete_ephemeral(CODE, "t", "h:1")
        assert view.wait_for(lambda cluster: not cluster.code["t"].replicas, 60)
        state.commit(fence, Delete((STORMS, "t")), Delete((CODE, "t")))
        assert view.wait_for(lambda cluster: not cluster.storms and not cluster.code, 60)
        state.commit(fence, Create((STORMS, "t"), storm("t")))
        assert view.wait_for(lambda cluster: cluster.storms, 60)
        state.session.client.delete(fence.lock_path)
        assert view.wait_for(lambda cluster: cluster.leader is None, 60)
        # What was seen earlier stays as it was.
        assert full.storms["t"].status == "ACTIVE"
        with pytest.raises(TypeError):
            full.storms["u"] = storm("u")  # type: ignore[index]
    told = frozenset().union(*changes)
    assert told == {STORMS, ASSIGNMENTS, CODE, NIMBUSES, SUPERVISORS, OWNERS, WORKERBEATS, LEADER_INFO}


def test_damage_is_left_out_and_named_once(connect, caplog) -> None:
    state, watcher = ClusterState(connect()), connect()
    with ClusterView(watcher) as view:
        fence = lead(state.session)
        state.commit(fence, Create((STORMS, "good"), storm("good")), Create((STORMS, "bad"), b"\xff\x00"))
        path = state.session.paths.of(STORMS, "bad")
        seen = view.wait_for(lambda cluster: cluster.problems and cluster.storms, 60)
        assert seen is not None
        assert list(seen.storms) == ["good"]
        assert list(seen.problems) == [path]
        view.refresh()
        assert caplog.text.count(f"Left out: {path}") == 1
        state.commit(fence, Put((STORMS, "bad"), storm("bad")))
        mended = view.wait_for(lambda cluster: not cluster.problems, 60)
        assert mended is not None
        assert sorted(mended.storms) == ["bad", "good"]


def test_it_can_be_read_while_zookeeper_is_away(zookeeper, connect) -> None:
    state = ClusterState(connect())
    fence = lead(state.session)
    state.commit(fence, Create((STORMS, "t"), storm("t")))
    with TcpProxy(zookeeper.connect_string) as proxy:
        watcher = connect(proxy.address)
        with ClusterView(watcher, now=lambda: 1700000000.0) as view:
            proxy.cut()
            proxy.drop()
            assert eventually(lambda: view.stale) == 1700000000.0
            assert list(view.snapshot().storms) == ["t"]
            with pytest.raises(UnavailableError, match=r"could not be read within 0\.2 s; the connection to ZooKeeper"):
                view.refresh(0.2)
            state.commit(fence, Create((STORMS, "u"), storm("u")), Delete((STORMS, "t")))
            proxy.mend()
            assert view.wait_for(lambda cluster: list(cluster.storms) == ["u"], 60)
            eventually(lambda: view.stale is None)
            # Watches are gone with the connection, and have to be there again.
            state.commit(fence, Create((STORMS, "v"), storm("v")), Put((STORMS, "u"), storm("u", status="INACTIVE")))
            assert view.wait_for(lambda c: "v" in c.storms and c.storms["u"].status == "INACTIVE", 60)
        watcher.close()


def test_it_survives_an_expired_session(connect) -> None:
    state, watcher = ClusterState(connect()), connect()
    fence = lead(state.session)
    with ClusterView(watcher) as view:
        for number in range(3):
            expire_session(watcher)
            state.commit(fence, Create((STORMS, f"t{number}"), storm("t")))
            assert view.wait_for(lambda cluster, number=number: len(cluster.storms) == number + 1, 60)
            eventually(lambda: view.stale is None and watcher.state == "CONNECTED")
            state.commit(fence, Put((STORMS, f"t{number}"), storm("t", status="KILLED")))
            assert view.wait_for(lambda cluster, number=number: cluster.storms[f"t{number}"].status == "KILLED", 60)


def test_refresh_has_read_what_was_written_before(connect) -> None:
    state, watcher = ClusterState(connect()), connect()
    fence = lead(state.session)
    with ClusterView(watcher) as view:
        for number in range(50):
            state.commit(fence, Create((STORMS, f"t{number}"), storm("t")))
            view.refresh()
            assert f"t{number}" in view.snapshot().storms


def test_a_callback_that_fails_or_is_removed(connect, caplog) -> None:
    state, watcher = ClusterState(connect()), connect()
    fence = lead(state.session)
    calls: Counter[str] = Counter()
    with ClusterView(watcher) as view:

        def fail(changed: frozenset[str]) -> None:
            calls["fail"] += 1
            assert threading.current_thread().name == "cluster-view"
            raise ValueError("no")

        remove = view.on_change(fail)
        state.commit(fence, Create((STORMS, "t"), storm("t")))
        assert view.wait_for(lambda cluster: cluster.storms, 60)
        eventually(lambda: "changes of storms failed" in caplog.text)
        remove()
        state.commit(fence, Delete((STORMS, "t")))
        assert view.wait_for(lambda cluster: not cluster.storms, 60)
        view.refresh()
    assert calls == {"fail": 1}
    assert view.wait_for(lambda cluster: cluster.storms, 0.05) is None


def test_a_change_costs_one_read_however_large_the_cluster_is(connect) -> None:
    state, watcher = ClusterState(connect(session_timeout_secs=4.0)), connect(session_timeout_secs=4.0)
    fence = lead(state.session)
    reads: Counter[str] = Counter()

    def counting(name: str) -> None:
        call = getattr(watcher.client, name)

        def counted(*args: object, **kwargs: object) -> object:
            reads[name] += 1
            return call(*args, **kwargs)

        setattr(watcher.client, name, counted)

    counting("get_async")
    counting("get_children_async")
    with ClusterView(watcher) as view:
        topologies = [f"t{number}" for number in range(200)]
        for topology in topologies:
            state.commit(
                fence,
                Create((STORMS, topology), storm(topology)),
                Create((ASSIGNMENTS, topology), assignment(topology)),
                Create((CODE, topology), manifest(topology)),
            )
            state.take_ownership(ownership(topology), 0)
            state.put_beat(beat(topology))
        for number in range(50):
            state.create_ephemeral(supervisor(f"s{number}"), SUPERVISORS, f"s{number}")
        assert view.wait_for(lambda c: len(c.workerbeats) == 200 and len(c.supervisors) == 50, 60)
        # Every node is read once, the replicas of every code too, and each addition may cost a look at its folder.
        nodes = 5 * 200 + 50
        assert nodes <= reads["get_async"] <= nodes + 20
        assert reads["get_children_async"] <= 200 + nodes + len(STORM.nodes) + 20

        view.refresh()
        reads.clear()
        for topology in topologies:
            state.put_beat(beat(topology))
        state.commit(fence, Put((STORMS, "t7"), storm("t7", status="INACTIVE")))
        assert view.wait_for(lambda cluster: cluster.storms["t7"].status == "INACTIVE", 60)
        eventually(lambda: view.snapshot().versions[WORKERBEATS]["t199"] == 1)
        assert reads["get_async"] <= 200 + 1 + 5
        assert reads["get_children_async"] == 0
