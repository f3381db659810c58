"""Spouts that emit record batches: every row comes through once, whatever fails, and whatever dies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from topologies import columnar
from topologies.notes import read_notes
from waiting import eventually

from storm_on_spark import LocalCluster
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots
from storm_on_spark.testing import kill_spout_host, run_topology

#: On a busy machine nothing may fail by a timeout: then it would be counted again.
TIMEOUT = {"topology.message.timeout.secs": 1000}


def check_exact(spark: SparkSession, folder: Path, count: int, info: TopologyInfo) -> None:
    """Asserts that every row was counted once and every message acked once, after one fail where one was due."""
    checkpoint = folder / "checkpoint"
    counts: Counter[str] = Counter()
    for state in read_bolt_state(spark, checkpoint, "count").values():
        counts.update(state["counts"])
    assert counts == columnar.expected_counts(count)
    ((emitted, acks, fails, pending),) = read_notes(folder, "closed")
    assert (emitted, pending) == (count, 0)
    assert acks == [int(columnar.is_tracked(number)) for number in range(count)]
    assert fails == [int(columnar.fails_once(number)) for number in range(count)]
    assert read_pending_roots(spark, checkpoint) == []
    assert info.pending == 0
    assert not list((checkpoint / "storm" / "outcomes").iterdir()), "outcomes that nobody was told of"


def test_rows_that_fail_are_emitted_again_and_every_message_is_acked_once(complete, spark_session, tmp_path):
    count = 20_000
    info = complete(columnar.columnar(count), TIMEOUT)
    check_exact(spark_session, tmp_path, count, info)
    failed = sum(map(columnar.fails_once, range(count)))
    assert failed > 1000
    tracked = sum(map(columnar.is_tracked, range(count)))
    assert (info.emitted, info.acked, info.failed) == (count + failed, tracked, failed)
    assert info.components["lines"].kind == "batch_spout"
    calls = [number for (number,) in read_notes(tmp_path, "acked")]
    assert sum(calls) == tracked
    assert len(calls) < tracked / 100, "acks did not come many at a time"


def test_a_killed_spout_host_loses_nothing(local_cluster: LocalCluster, spark_session, tmp_path):
    count = 20_000
    conf = {**TIMEOUT, "test.notes": str(tmp_path), "topology.checkpoint.dir": str(tmp_path / "checkpoint")}
    # With few messages pending it takes many micro-batches.
    topology = columnar.columnar(count, max_pending=4 * columnar.BATCH, hosts=3)
    query = local_cluster.submit_topology("columnar", conf, topology)
    pids = []
    for fault in range(1, 3):
        eventually(lambda n=fault: sum(rows for (rows,) in read_notes(tmp_path, "acked")) > n * count / 4, "acks", 100)
        pids.append(kill_spout_host())
        eventually(lambda n=fault: len(read_notes(tmp_path, "begun")) > n, "another spout host", 100)
    assert local_cluster.await_completion("columnar", 200)
    info = local_cluster.get_topology_info("columnar")
    assert query.failure is None
    assert info.status == "COMPLETED"
    check_exact(spark_session, tmp_path, count, info)
    assert len(set(pids)) == 2
    begun = [number for (number,) in read_notes(tmp_path, "begun")]
    assert len(begun) == 3
    assert 0 == begun[0] < begun[1] <= begun[2] < count, "a host was not killed in the middle"
    messages = [error.message for part in info.components.values() for error in part.errors]
    assert sum("killed by SIGKILL" in message for message in messages) == 2


def test_the_test_kit_captures_the_rows_of_a_batch_spout_and_replaces_it(nothing_left_behind, spark_session, tmp_path):
    conf = {**TIMEOUT, "test.notes": str(tmp_path)}
    captured = run_topology(columnar.columnar(50), conf=conf, spark=spark_session)
    lines = Counter(line for line, _ in captured.values("lines"))
    again = Counter(columnar.line_of(number) for number in filter(columnar.fails_once, range(50)))
    assert lines == Counter(map(columnar.line_of, range(50))) + again
    assert len(captured.values("split")) == 100
    # No hook is told of batches; the counters are.
    assert (captured.acks, captured.fails) == ((), ())
    tracked = sum(map(columnar.is_tracked, range(50)))
    assert (captured.info.acked, captured.info.failed) == (tracked, again.total())

    captured = run_topology(columnar.columnar(50), {"lines": [["to be", False]]}, conf, spark=spark_session)
    assert sorted(captured.values("split")) == [("be",), ("to",)]
    assert captured.acked("lines") == [0]
