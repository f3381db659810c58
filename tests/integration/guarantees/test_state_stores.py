"""What Spark keeps of a query that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from topologies.kit import word_count

from storm_on_spark import BaseBasicBolt, Config, TopologyBuilder
from storm_on_spark.runtime.state.version import StateVersions
from storm_on_spark.spark.state import read_bolt_state, state_values
from storm_on_spark.testing import GATE, ListSpout, running_topology

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def open_stores(spark: Any, checkpoint: Path, run_id: Any) -> list[str]:
    """Returns operator/partition of the state stores that Spark has open for a run."""
    package = "org.apache.spark.sql.execution.streaming.state"
    jvm = spark._jvm  # noqa: SLF001 # PySpark has no public way to state stores
    stores = getattr(getattr(jvm, f"{package}.StateStore$"), "MODULE$")
    run = jvm.java.util.UUID.fromString(str(run_id))
    return [
        f"{operator}/{partition}"
        for operator in range(2)
        for partition in range(2)
        if stores.isLoaded(
            getattr(jvm, f"{package}.StateStoreProviderId")(
                getattr(jvm, f"{package}.StateStoreId")(f"file:{checkpoint}/state", operator, partition, "default"), run
            )
        )
    ]


@pytest.mark.parametrize("name", [pytest.param("checkpoint", marks=pytest.mark.soak), "a check#point, 100%20"])
def test_no_state_store_of_an_ended_topology_stays_open(name: str, spark_session: Any, tmp_path: Path) -> None:
    """Else Spark's maintenance would write to the checkpoint again, also after it was removed."""
    checkpoint = tmp_path / name
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(checkpoint), Config.TOPOLOGY_PARTITIONS: 2}
    topology = word_count(["a b", "c", GATE("end")])
    with running_topology(topology, conf=conf, spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.acks) == 2)
        assert open_stores(spark_session, checkpoint, running.query.runId) == ["0/0", "0/1", "1/0", "1/1"]
        running.open_gate("end")
        running.await_completion()
        assert open_stores(spark_session, checkpoint, running.query.runId) == []
    assert list(tmp_path.iterdir()) == [checkpoint]
    states = read_bolt_state(spark_session, checkpoint, "count").values()
    assert sorted(word for state in states for word in state["counts"]) == ["a", "b", "c"]


class Weigh(BaseBasicBolt):
    """Has much in its attributes, and changes little of it."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.weights = dict.fromkeys(range(20_000), 300)

    def execute(self, tup: Any, collector: Any) -> None:
        self.weights[len(tup[0])] += 1

    def declare_output_fields(self, declarer: Any) -> None: ...


def test_a_snapshot_with_deltas_is_read_whole(spark_session: Any, tmp_path: Path) -> None:
    gates = [GATE(str(number)) for number in range(5)]
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([item for gate in gates for item in ("a", "storm", gate)], "word"))
    builder.set_bolt("weigh", Weigh()).fields_grouping("words", "word")
    # In micro-batches, each of which writes what it has changed.
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path), Config.TOPOLOGY_PROFILE: "latency"}
    with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
        for number in range(5):
            running.wait_until(lambda captured, n=number: len(captured.acks) == 2 * n + 2)
            running.open_gate(str(number))
        running.await_completion()
    deltas = [
        StateVersions.load(record).newest.deltas for *_, record in state_values(spark_session, tmp_path, "version")
    ]
    assert sum(deltas) >= 3
    (state,) = read_bolt_state(spark_session, tmp_path, "weigh").values()
    assert state["weights"] == {**dict.fromkeys(range(20_000), 300), 1: 305, 5: 305}
