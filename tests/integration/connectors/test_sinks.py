"""Bolts that the driver writes, on real Spark: what they write is there once, also when the driver dies in between."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import sqlite3
from functools import partial

import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable
from processes import kill_group, killed, script
from topologies import delta_counts
from waiting import eventually

from storm_on_spark import BatchBolt, Fields, LocalCluster, TopologyBuilder, TopologyFailedError
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.connectors.frames import ConsoleBolt, ForeachBatchBolt, MemoryBolt
from storm_on_spark.connectors.jdbc import JdbcBolt
from storm_on_spark.connectors.sinks import Columns
from storm_on_spark.testing import ListSpout, run_topology


def transactions(table):
    """Returns the numbers of the micro-batches in a Delta table, as the files of its log have them."""
    found = []
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        written = [action["txn"] for action in actions if "txn" in action]
        # The other id of a writer says how it was planned.
        found += [each["version"] for each in written if not each["appId"].endswith("/plan")]
    return found


def test_what_a_sink_raises_ends_the_topology_and_the_same_micro_batch_comes_again(
    nothing_left_behind, spark_session, tmp_path
):
    written = {}

    def write(frame, micro_batch):
        rows = sorted(row["word"] for row in frame.collect())
        if not (tmp_path / "repaired").exists():
            raise OSError("no space left")
        assert micro_batch not in written
        written[micro_batch] = rows

    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([["a"], ["b"], ["c"], [1]], fields=["word"]))
    builder.set_bolt("out", ForeachBatchBolt({"word": "string"}, write), 2).fields_grouping("words", Fields("word"))
    topology = builder.create_topology()
    conf = {"topology.checkpoint.dir": str(tmp_path / "checkpoint"), "topology.batch.max.tuples": 4}

    with pytest.raises(TopologyFailedError, match='bolt "out" could not write micro-batch 0: OSError: no space left'):
        run_topology(topology, conf=conf, spark=spark_session, capture=[])
    (tmp_path / "repaired").touch()
    captured = run_topology(topology, conf=conf, spark=spark_session, capture=[])

    assert written[0] == ["a", "b", "c"], "the micro-batch that could not be written, as it was"
    assert sorted(captured.acked()) == [0, 1, 2]
    assert set(captured.failed()) == {3}, "a tuple that doesn't fit fails alone"


class AsColumns(BatchBolt):
    def execute_batch(self, batch, collector):
        collector.emit(batch)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count", "day"))


def test_files_database_view_and_console_get_each_tuple_once(nothing_left_behind, spark_session, tmp_path, capsys):
    connect = partial(sqlite3.connect, str(tmp_path / "words.db"))
    with contextlib.closing(connect()) as connection:
        connection.execute("CREATE TABLE words (word TEXT, count BIGINT)")
    types = {"word": "string", "count": "long", "day": "date"}
    days = [datetime.date(2026, 2, 28), datetime.date(2026, 3, 1), None]
    rows = [(word, count, days[count % 3]) for count, word in enumerate("abcab")]
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(rows, fields=list(types)))
    bolts = {
        "files": FileBolt(tmp_path / "files", types, "parquet", partition_by=["day"]),
        "table": JdbcBolt(connect, "words", {"word": "string", "count": "long"}, keys=["word"]),
        "view": MemoryBolt("seen_words", types),
        "console": ConsoleBolt(types, rows=2),
    }
    builder.set_bolt("columns", AsColumns(), 2).shuffle_grouping("words")
    for name, bolt in bolts.items():
        # What comes as columns is written as it is.
        source = "columns" if name in ("view", "files") else "words"
        builder.set_bolt(name, bolt, 2).fields_grouping(source, Fields("word"))
    captured = run_topology(builder.create_topology(), spark=spark_session, capture=[])

    assert (captured.info.acked, captured.info.failed) == (5, 0)
    expected = spark_session.createDataFrame(rows, "word string, count long, day date")
    files = spark_session.read.parquet(str(tmp_path / "files"))
    assert_df_equality(files, expected, ignore_row_order=True)
    assert_df_equality(spark_session.table("seen_words"), expected, ignore_row_order=True)
    stream = bolts["files"].read_stream(spark_session).groupBy("word").sum("count")
    query = stream.writeStream.format("memory").queryName("sums").outputMode("complete").start()
    query.processAllAvailable()
    query.stop()
    sums = spark_session.createDataFrame([("a", 3), ("b", 5), ("c", 2)], "word string, `sum(count)` long")
    assert_df_equality(spark_session.table("sums"), sums, ignore_row_order=True, ignore_metadata=True)
    with contextlib.closing(connect()) as connection:
        assert sorted(connection.execute("SELECT word, count FROM words")) == [("a", 3), ("b", 4), ("c", 2)]
    printed = capsys.readouterr().out
    assert sum(int(n) for n in re.findall(r"^micro-batch \d+: (\d+) rows$", printed, re.MULTILINE)) == 5
    assert "|word|count|day       |" in printed
    for view in ("seen_words", "sums"):
        spark_session.catalog.dropTempView(view)


def test_what_the_console_shows_moves_no_cursor(nothing_left_behind, spark_session, capfd):
    types = {"word": "string", "words": "array<string>", "count": "long"}
    row = ("a\x1b[2J\n", ["b\x9b", None, "c\u202e"], 3)
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout([row], fields=list(types)))
    builder.set_bolt("console", ConsoleBolt(types)).shuffle_grouping("words")
    run_topology(builder.create_topology(), spark=spark_session)
    printed = capfd.readouterr().out
    assert r"|a\x1b[2J\n|[b\x9b, NULL, c\u202e]|3    |" in printed
    assert not set(printed) & set("\x1b\x9b\u202e")


def test_of_a_thousand_rows_one_is_refused_and_the_others_are_written_once(
    nothing_left_behind, spark_session, tmp_path
):
    connect = partial(sqlite3.connect, str(tmp_path / "words.db"))
    with contextlib.closing(connect()) as connection:
        connection.execute("CREATE TABLE words (n BIGINT CHECK (n <> 577))")
    columns = {"n": "long"}
    DeltaTable.create(tmp_path / "table", Columns(columns).schema()).alter.add_constraint({"taken": "n <> 577"})
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([[n] for n in range(1000)], fields=["n"]))
    bolts = {
        "database": JdbcBolt(connect, "words", columns, dead_letters=tmp_path / "refused"),
        "delta": DeltaBolt(tmp_path / "table", columns, dead_letters=tmp_path / "refused"),
    }
    for name, bolt in bolts.items():
        builder.set_bolt(name, bolt, 2).shuffle_grouping("numbers")
    captured = run_topology(builder.create_topology(), spark=spark_session, capture=[])

    assert (captured.info.acked, captured.info.failed) == (1000, 0), "what is in a file is done"
    left = [n for n in range(1000) if n != 577]
    with contextlib.closing(connect()) as connection:
        assert sorted(connection.execute("SELECT n FROM words")) == [(n,) for n in left]
    assert sorted(DeltaTable(tmp_path / "table").to_pyarrow_table()["n"].to_pylist()) == left
    refused = spark_session.read.json(str(tmp_path / "refused"))
    assert [row["n"] for row in refused.select("row.n").collect()] == [577, 577]
    reported = {error.component: error.message for error in captured.info.errors}
    assert 'bolt "database": the table words refuses 1 row: IntegrityError' in reported["database"]
    assert "refuses 1 row: constraint taken (n != 577)" in reported["delta"]


@pytest.mark.slow
def test_a_driver_killed_between_a_delta_commit_and_that_of_spark_leaves_each_row_once(spark_session, tmp_path):
    n = DeltaTable.create(tmp_path / "appended", Columns({"n": "long"}).schema())
    n.alter.add_constraint({"taken": "n % 50 <> 7"})
    with script(tmp_path / "tmp", "-m", "topologies.delta_counts", str(tmp_path)) as process:
        eventually(lambda: (tmp_path / "noted").exists() or process.poll() is not None, "the third commit")
        kill_group(process)
        assert killed(process), "the topology ended before the fault"
    before = transactions(tmp_path / "appended")
    assert len(before) == 3
    assert transactions(tmp_path / "upserted") == before[:2], "the fault was between the two"

    with LocalCluster(spark_session) as cluster:
        topology = delta_counts.delta_counts(str(tmp_path))
        cluster.submit_topology("delta-counts", delta_counts.conf_of(str(tmp_path)), topology)
        assert cluster.await_completion("delta-counts", 120)
        info = cluster.get_topology_info("delta-counts")
    assert (info.status, info.failed) == ("COMPLETED", 0)

    for name in ("appended", "upserted"):
        after = transactions(tmp_path / name)
        assert after == sorted(set(after)), "no micro-batch is committed twice"
    assert transactions(tmp_path / "appended")[:3] == before
    numbers = range(delta_counts.COUNT)
    expected = spark_session.createDataFrame([(n,) for n in numbers if n % 50 != 7], "n long")
    appended = spark_session.createDataFrame(DeltaTable(tmp_path / "appended").to_pyarrow_table())
    assert_df_equality(appended, expected, ignore_row_order=True)
    refused = spark_session.read.json(str(tmp_path / "refused")).select("row.n")
    letters = spark_session.createDataFrame([(n,) for n in numbers if n % 50 == 7], "n long")
    assert_df_equality(refused, letters, ignore_row_order=True)
    counts = [(key, len([n for n in numbers if n % delta_counts.KEYS == key])) for key in range(delta_counts.KEYS)]
    upserted = spark_session.createDataFrame(DeltaTable(tmp_path / "upserted").to_pyarrow_table())
    assert_df_equality(upserted, spark_session.createDataFrame(counts, "key int, count long"), ignore_row_order=True)
