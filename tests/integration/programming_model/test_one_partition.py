"""With one partition nothing is exchanged: one Spark operator executes all stages, in one Spark task."""

from __future__ import annotations

from collections import Counter

import pytest
from topologies import shapes
from topologies.notes import read_notes
from topologies.parts import Received

from storm_on_spark import Config, LocalCluster, Topology
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


def spark_stages(cluster: LocalCluster, topology: Topology, conf: dict[str, object]) -> set[int]:
    """Runs a topology to its end and returns how many Spark stages its micro-batches had."""
    query = cluster.submit_topology("test", conf, topology)
    assert cluster.await_completion("test", 60)
    tracker = cluster.spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    assert jobs
    return {len(job.stageIds) for job in jobs}


# Source, join, one and two, rejoin, end, ackers; of these only `end` has neither state nor a call from its producer.
@pytest.mark.parametrize(("partitions", "expected"), [(1, 1), (2, 6)])
def test_all_stages_are_one_task_and_lose_nothing(local_cluster, tmp_path, partitions, expected):
    conf = {
        "test.notes": str(tmp_path),
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
        Config.TOPOLOGY_PARTITIONS: partitions,
    }
    found = spark_stages(local_cluster, shapes.joined(), conf)
    assert found == {expected}

    ends = [Received(*record).values[0] for record in read_notes(tmp_path, "received")]
    assert sorted(ends) == list(range(shapes.JOINED))
    for bolt in ("join", "rejoin"):
        states = read_bolt_state(local_cluster.spark, tmp_path / "checkpoint", bolt)
        assert len(states) == 2
        assert [state["waiting"] for state in states.values()] == [{}, {}]
    assert read_pending_roots(local_cluster.spark, tmp_path / "checkpoint") == []


@pytest.mark.representative
def test_carried_tuples_and_stages_without_state_between(local_cluster, tmp_path):
    conf = {"test.notes": str(tmp_path), Config.TOPOLOGY_PARTITIONS: 1}
    found = spark_stages(local_cluster, shapes.circular(), conf)

    assert Counter(read_notes(tmp_path, "hops")) == shapes.circular_hops()
    assert found == {1}
