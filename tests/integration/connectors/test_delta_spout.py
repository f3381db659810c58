"""`DeltaSpout` on a real table: what is there, what is appended, and changes."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from storm_on_spark import BaseBasicBolt, FailedException, TopologyBuilder
from storm_on_spark.connectors.delta import DeltaSpout
from storm_on_spark.connectors.sources import RetryBackoff
from storm_on_spark.testing import running_topology


class Picky(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup["word"] == "never":
            raise FailedException("never")


class Dead(BaseBasicBolt):
    def execute(self, tup, collector): ...


def test_a_table_its_changes_and_a_starting_version(nothing_left_behind, spark_session, tmp_path) -> None:
    table = str(tmp_path / "table")
    # By default Delta reads the log of a table in 50 partitions, however small it is.
    spark_session.conf.set("spark.databricks.delta.snapshotPartitions", "1")

    def write(*words: str) -> None:
        rows = pa.table({"n": pa.array([len(word) for word in words], pa.int64()), "word": list(words)})
        write_deltalake(table, rows, mode="append", configuration={"delta.enableChangeDataFeed": "true"})

    def run(count: int, *more: str):
        builder = TopologyBuilder()
        retry = RetryBackoff(1, 1, max_retries=1)
        builder.set_spout("rows", DeltaSpout(table, ["word", "n"], retry=retry, dead_letter_stream="dead"))
        builder.set_spout("changes", DeltaSpout(table, ["word"], change_feed=True, starting_version=0))
        builder.set_spout("later", DeltaSpout(table, ["word"], starting_version=1))
        builder.set_bolt("picky", Picky()).shuffle_grouping("rows")
        builder.set_bolt("dead", Dead()).shuffle_grouping("rows", "dead")
        conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint")}
        with running_topology(builder.create_topology(), conf=conf, spark=spark_session) as running:
            write(*more)
            return running.wait_until(
                lambda captured: (
                    len(captured.values("rows")) == count and captured.info.pending == 0 and captured.values("later")
                ),
                60,
            )

    write("to", "never")
    first = run(4, "be")
    assert sorted(first.values("rows")) == [("be", 2), ("never", 5), ("never", 5), ("to", 2)]
    ((name, row, reason, failures),) = first.values("rows", "dead")
    assert isinstance(name, int), "it says where Spark read the row"
    assert (row, reason, failures) == ({"word": "never", "n": 5}, "a bolt failed its tuple, or that timed out", 2)
    assert sorted(values[:3] for values in first.values("changes")) == [
        ("be", "insert", 1),
        ("never", "insert", 0),
        ("to", "insert", 0),
    ]
    assert first.values("later") == [("be",)]
    again = run(1, "or")
    assert again.values("rows") == [("or", 2)], "only what is new"
    assert DeltaTable(table).version() == 2
