"""What a view makes of what it reads."""

from __future__ import annotations

import cluster_records as made
from cluster_records import manifest, storm

from storm_on_spark.cluster.paths import CODE, LEADER_INFO, LEADER_LOCK, STORMS, WORKERBEATS
from storm_on_spark.cluster.records import LeaderInfo, WorkerBeat, encode
from storm_on_spark.cluster.state.contents import Contents, Node


def leader(epoch: int) -> Node:
    return Node(encode(LeaderInfo(address=f"h:{epoch}", epoch=epoch, since=0.0)), version=epoch, created=1)


def test_a_leader_is_who_wrote_and_is_first() -> None:
    contents = Contents("/storm")
    contents.set_names(LEADER_LOCK, ["n-1", "n-2"])
    contents.set_node((LEADER_LOCK, "n-1"), Node(b"h:10", 0, created=10))
    contents.set_node((LEADER_LOCK, "n-2"), Node(b"h:20", 0, created=20))
    assert contents.snapshot()[0].leader is None
    contents.set_node((LEADER_INFO,), leader(10))
    snapshot, changed = contents.snapshot()
    assert snapshot.leader is not None
    assert snapshot.leader.address == "h:10"
    assert changed == {LEADER_INFO}
    # The first is gone, the second has not taken over yet.
    assert contents.set_names(LEADER_LOCK, ["n-2"]) == set()
    assert contents.snapshot()[0].leader is None
    contents.set_node((LEADER_INFO,), leader(20))
    second = contents.snapshot()[0].leader
    assert second is not None
    assert second.address == "h:20"
    # One more in the queue changes nothing.
    assert contents.set_names(LEADER_LOCK, ["n-2", "n-3"]) == {"n-3"}
    contents.set_node((LEADER_LOCK, "n-3"), Node(b"h:30", 0, created=30))
    assert contents.snapshot()[0].leader == second


def test_what_did_not_change_is_the_same_object() -> None:
    contents = Contents("/storm")
    contents.set_names(STORMS, ["t"])
    contents.set_node((STORMS, "t"), Node(encode(storm(conf={"my.list": [1]})), 0, 1))
    first, changed = contents.snapshot()
    assert changed == {STORMS}
    assert contents.snapshot() == (first, frozenset())
    contents.set_node((STORMS, "t"), Node(encode(storm(conf={"my.list": [1]})), 0, 1))
    again, changed = contents.snapshot()
    assert again is first
    assert not changed
    # A new version with the same content counts: who writes under it needs to know.
    contents.set_node((STORMS, "t"), Node(encode(storm(conf={"my.list": [1]})), 1, 1))
    newer, changed = contents.snapshot()
    assert changed == {STORMS}
    assert newer.versions[STORMS] == {"t": 1}
    assert first.versions[STORMS] == {"t": 0}
    assert newer.code is first.code


def test_code_and_its_replicas_come_in_any_order() -> None:
    contents = Contents("/storm")
    contents.set_names(CODE, ["t"])
    contents.set_replicas("t", ["h:1"])
    assert contents.snapshot()[0].code == {}
    contents.set_node((CODE, "t"), Node(encode(manifest()), 0, 1))
    assert contents.snapshot()[0].code["t"].replicas == {"h:1"}
    contents.set_replicas("t", ["h:2", "h:1"])
    assert contents.snapshot()[0].code["t"].replicas == {"h:1", "h:2"}
    contents.set_node((CODE, "t"), None)
    assert contents.snapshot()[0].code == {}
    # Code of the same name that comes again has none yet.
    contents.set_names(CODE, ["t"])
    contents.set_node((CODE, "t"), Node(encode(manifest()), 0, 2))
    assert contents.snapshot()[0].code["t"].replicas == frozenset()


def test_a_damaged_node_counts_as_absent_until_it_is_mended_or_gone() -> None:
    contents = Contents("/storm")
    contents.set_names(STORMS, ["t"])
    contents.set_node((STORMS, "t"), Node(encode(storm(conf={"my.list": [1]})), 0, 1))
    contents.set_node((STORMS, "t"), Node(b"{}", 1, 1))
    snapshot, changed = contents.snapshot()
    assert changed == {STORMS}
    assert snapshot.storms == {}
    assert snapshot.versions[STORMS] == {}
    assert list(snapshot.problems) == ["/storm/storms/t"]
    contents.set_node((STORMS, "t"), None)
    assert contents.snapshot()[0].problems == {}
    assert contents.names(STORMS) == frozenset()


def beat(time: float, pid: int, status: str = "ACTIVE") -> WorkerBeat:
    return made.beat("t", time, pid=pid, info={"status": status})


def test_a_driver_counts_that_beats_after_the_last_words_of_another_whatever_the_clocks_of_their_hosts_say() -> None:
    """Else a healthy driver was silent as long as its clock was behind that of the host whose driver had failed."""
    contents = Contents("/storm")

    def shown() -> WorkerBeat:
        return contents.snapshot()[0].workerbeats["t"]

    last = beat(1000.0, 1, "FAILED")
    contents.set_beats({"t": beat(999.0, 1)})
    contents.set_node((WORKERBEATS, "t"), Node(encode(last), 0, 1))
    assert shown() == last
    # What the same driver said before may be read after its last words.
    contents.set_beats({"t": beat(1001.0, 1)})
    assert shown() == last
    for at in (500.0, 503.0):
        contents.set_beats({"t": beat(at, 2)})
        assert shown() == beat(at, 2)
    again = beat(504.0, 2, "FAILED")
    contents.set_node((WORKERBEATS, "t"), Node(encode(again), 1, 1))
    assert shown() == again


def test_a_nimbus_that_starts_goes_by_the_time_until_a_heartbeat_changes() -> None:
    contents = Contents("/storm")
    last = beat(1000.0, 1, "FAILED")
    contents.set_node((WORKERBEATS, "t"), Node(encode(last), 0, 1))
    contents.set_beats({"t": beat(500.0, 2)})
    assert contents.snapshot()[0].workerbeats["t"] == last
    contents.set_beats({"t": beat(503.0, 2)})
    assert contents.snapshot()[0].workerbeats["t"] == beat(503.0, 2)
    contents.set_beats({})
    contents.set_beats({"t": beat(500.0, 2)})
    assert contents.snapshot()[0].workerbeats["t"] == last


def test_a_topology_that_is_complete_stays_so() -> None:
    contents = Contents("/storm")
    last = beat(1000.0, 1, "COMPLETED")
    contents.set_node((WORKERBEATS, "t"), Node(encode(last), 0, 1))
    for at in (2000.0, 2003.0):
        contents.set_beats({"t": beat(at, 2)})
        assert contents.snapshot()[0].workerbeats["t"] == last
