"""`LocalCluster`: several topologies on one session, activated, deactivated, killed."""

from __future__ import annotations

import logging
import socket
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from topologies.lasting import lasting
from topologies.notes import read_notes
from waiting import eventually

from storm_on_spark import LocalCluster
from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, InvalidTopologyError, NotAliveError
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


def test_topologies_run_side_by_side_and_are_killed_one_by_one(local_cluster: LocalCluster, tmp_path):
    names = ["one", "two"]
    confs = {}
    for name in names:
        (tmp_path / name).mkdir()
        confs[name] = {
            "test.notes": str(tmp_path / name),
            "topology.checkpoint.dir": str(tmp_path / name / "checkpoint"),
        }
    # From other threads, where a session is not "active" by itself.
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: local_cluster.submit_topology(name, confs[name], lasting()), names))
    assert sorted(info.name for info in local_cluster.list_topologies()) == names
    with pytest.raises(AlreadyAliveError, match="'one' is running already"):
        local_cluster.submit_topology("one", confs["one"], lasting())
    with pytest.raises(NotAliveError, match="'three' was submitted; submitted: one, two"):
        local_cluster.kill_topology("three")

    def acked(name: str) -> int:
        return local_cluster.get_topology_info(name).acked

    for name in names:
        eventually(lambda name=name: acked(name) > 300, f"acks of {name}")
    assert not local_cluster.await_completion("one", 0.1)

    local_cluster.kill_topology("one", wait_secs=60)
    info = local_cluster.get_topology_info("one")
    assert (info.status, info.pending, info.acked) == ("KILLED", 0, info.emitted)
    assert [info.name for info in local_cluster.list_topologies()] == ["two"]
    life = read_notes(tmp_path / "one", "life")
    assert [what for what, *_ in life] == ["activate", "deactivate", "close"]
    # Whatever the spout emitted was processed and acked before it ended.
    assert life[1][1] == life[2][1] == life[2][2]
    states = read_bolt_state(local_cluster.spark, tmp_path / "one" / "checkpoint", "tally").values()
    assert sum(state["count"] for state in states) == life[2][2]
    assert read_pending_roots(local_cluster.spark, tmp_path / "one" / "checkpoint") == []

    # The other goes on as if nothing had happened; killed at once, it does not wait.
    before = acked("two")
    eventually(lambda: acked("two") > before + 100, "acks of two")
    local_cluster.kill_topology("two", wait_secs=0)
    assert local_cluster.get_topology_info("two").status == "KILLED"


@pytest.mark.representative
def test_a_deactivated_topology_emits_nothing_until_it_is_activated(local_cluster: LocalCluster, tmp_path):
    query = local_cluster.submit_topology("paused", {"test.notes": str(tmp_path)}, lasting())
    eventually(lambda: query.status_info().acked > 100, "acks")

    local_cluster.deactivate("paused")
    assert query.drain(60)
    info = query.status_info()
    assert (info.status, info.pending, info.acked) == ("INACTIVE", 0, info.emitted)
    emitted = read_notes(tmp_path, "life")[-1][1]
    eventually(lambda: query.status_info().emitted == emitted, "the last word of the spout")

    local_cluster.activate("paused")
    eventually(lambda: query.status_info().acked > emitted + 100, "acks after activation")
    assert query.status_info().status == "ACTIVE"
    life = [record[:2] for record in read_notes(tmp_path, "life")]
    assert life == [("activate", 0), ("deactivate", emitted), ("activate", emitted)]
    query.stop()


def test_a_cluster_without_a_session_takes_the_one_there_is_and_leaves_it(spark_session, tmp_path):
    with LocalCluster(conf={"test.notes": str(tmp_path)}) as cluster, ThreadPoolExecutor(1) as thread:
        # In a thread that has not used the session before.
        assert thread.submit(lambda: cluster.spark).result().sparkContext is spark_session.sparkContext
    assert spark_session.range(3).count() == 3


def test_a_rebalanced_topology_goes_on_where_it_was_and_so_do_its_metrics(
    local_cluster: LocalCluster, tmp_path, caplog: pytest.LogCaptureFixture
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = {
        "test.notes": str(tmp_path),
        "topology.checkpoint.dir": str(tmp_path / "checkpoint"),
        "topology.metrics.port": port,
        "topology.metrics.consumer.register": [{"class": "org.apache.storm.metric.LoggingMetricsConsumer"}],
        "topology.builtin.metrics.bucket.size.secs": 1,
    }
    caplog.set_level(logging.INFO, "storm_on_spark.metrics_log")
    query = local_cluster.submit_topology("again", conf, lasting())

    def acked() -> int:
        return local_cluster.get_topology_info("again").acked

    eventually(lambda: acked() > 100, "acks before")
    with pytest.raises(InvalidTopologyError, match='no component "talyl"'):
        local_cluster.rebalance("again", num_executors={"talyl": 1})
    with pytest.raises(ConfigError, match="at least 1 executor, not 0"):
        local_cluster.rebalance("again", num_executors={"tally": 0})
    with pytest.raises(ConfigError, match=r"can't change topology\.checkpoint\.dir"):
        local_cluster.rebalance("again", conf={"topology.checkpoint.dir": str(tmp_path / "other")})
    assert query.isActive
    other = local_cluster.rebalance("again", wait_secs=60, num_executors={"tally": 1})
    assert not query.isActive
    assert other.isActive

    def scraped() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()

    executed = 'storm_component_executed_tuples_total{component="tally",topology="again"}'
    eventually(lambda: executed in scraped(), "its metrics again")
    eventually(lambda: "__execute-count" in caplog.text, "points of a consumer")
    first = query.status_info()
    before = first.acked
    eventually(lambda: acked() > 100, "acks after")
    local_cluster.kill_topology("again", wait_secs=60)
    # Windows go on where the counters of this start began anew.
    second = local_cluster.get_topology_info("again")
    for window in ("600", ":all-time"):
        counted = local_cluster.get_topology_info("again", window)
        assert (counted.emitted, counted.acked) == (first.emitted + second.emitted, first.acked + second.acked)
        for name in counted.components:
            parts = [info.components[name] for info in (first, second)]
            assert counted.components[name].counters == tuple(map(sum, zip(*[p.counters for p in parts], strict=True)))
    info = other.status_info([":all-time"]).windows[":all-time"]
    assert info.components["__acker"].executed > 0
    assert info.complete is not None
    states = read_bolt_state(local_cluster.spark, tmp_path / "checkpoint", "tally").values()
    assert sum(state["count"] for state in states) == before + acked()
    with pytest.raises(NotAliveError, match="does not run"):
        local_cluster.rebalance("again")
