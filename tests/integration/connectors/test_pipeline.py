"""A topology amid a Spark pipeline: a streaming DataFrame as a spout, and a stream as a streaming DataFrame."""

from __future__ import annotations

import datetime
import decimal
import gc
import json
import os
import pickle

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from processes import kill_group, killed, script
from pyspark.sql import functions as sf
from topologies import amid
from waiting import eventually

from storm_on_spark import Fields, LocalCluster, SetupError, compile_topology
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.connectors.pipeline import DataFrameSpout, StreamBolt, read_stream
from storm_on_spark.spark.session import settings_applied

FILES, PER_FILE = 4, 25


def write_events(folder):
    """Writes events to files; returns those that are clicks, as rows."""
    folder.mkdir()
    rows = []
    for number in range(FILES):
        lines = []
        for n in range(number * PER_FILE, (number + 1) * PER_FILE):
            at = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=n, microseconds=n)
            event = {"user": f"u{n % 3}", "kind": ("click", "view")[n % 2], "n": n, "price": n / 4}
            event |= {"tags": [f"t{n % 2}"] * (n % 3), "at": at.isoformat()}
            lines.append(json.dumps(event) + "\n")
            if event["kind"] == "click":
                price = decimal.Decimal(n) / 4
                rows.append((event["user"], n, price, event["tags"], at))
        path = folder / f"{number}.json"
        path.write_text("".join(lines))
        os.utime(path, (1_000_000_000 + number,) * 2)
    return rows


def expected_frame(spark, rows):
    """Returns what comes out of the topology, and so what plain Spark makes of the same rows."""
    schema = "user STRING, n BIGINT, price DECIMAL(10,2), tags ARRAY<STRING>, at TIMESTAMP"
    frame = spark.createDataFrame(rows, schema)
    return frame.withColumn("tries", sf.when(sf.col("n") % 10 == 7, 2).otherwise(1).cast("int"))


def read_all(frame, checkpoint, mode="append"):
    """Returns the rows that are there to read since the checkpoint, as a query of plain Spark gets them."""
    found = []
    with settings_applied(frame.sparkSession, {"spark.sql.shuffle.partitions": "1"}):
        writer = frame.writeStream.foreachBatch(lambda rows, _: found.append(rows.toArrow()))
        query = writer.option("checkpointLocation", str(checkpoint)).outputMode(mode).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    return frame.sparkSession.createDataFrame(pa.concat_tables(found))


def test_a_streaming_frame_goes_through_a_topology_and_comes_out_with_the_same_rows_and_types(
    nothing_left_behind, spark_session, tmp_path
) -> None:
    write_events(tmp_path / "in")
    events = spark_session.readStream.schema(amid.SCHEMA).json(str(tmp_path / "in"))
    users = events.drop("kind").where(sf.col("n") < 50).withColumn("user", sf.upper("user"))
    spout = DataFrameSpout(users, retry=amid.RETRY)
    assert dict(spout.tuple_streams()["default"].types) == {k: v for k, v in amid.TYPES.items() if k != "tries"}
    topology = amid.amid(spout, StreamBolt(tmp_path / "out"))
    query = compile_topology(topology, {"topology.partitions": 1}).start(spark_session, "amid", tmp_path / "checkpoint")
    try:
        stream = query.stream("tried")
        assert stream.isStreaming
        with pytest.raises(SetupError, match='no bolt that can be read subscribes to stream "default" of "clicks"'):
            query.stream("clicks")
        eventually(lambda: query.status_info().acked == 50 or not query.isActive, "50 rows acked")
        assert query.status_info().failed == 5, "each that was to fail, once"
    finally:
        query.stop()
    came_out = read_all(stream, tmp_path / "reader")
    totals = read_all(stream.groupBy("user").agg(sf.sum("price").alias("price")), tmp_path / "totals", "complete")
    static = spark_session.read.schema(amid.SCHEMA).json(str(tmp_path / "in"))
    plain = static.drop("kind").where("n < 50").withColumn("user", sf.upper("user"))
    plain = plain.withColumn("tries", sf.when(sf.col("n") % 10 == 7, 2).otherwise(1))
    assert plain.count() == 50
    assert_df_equality(came_out, plain, ignore_row_order=True, ignore_nullable=True)
    plain_totals = plain.groupBy("user").agg(sf.sum("price").alias("price"))
    assert_df_equality(totals, plain_totals, ignore_row_order=True, ignore_nullable=True)


@pytest.mark.slow
def test_a_reader_gets_each_tuple_once_when_the_driver_is_killed_between_the_file_and_the_commit(
    spark_session, tmp_path
) -> None:
    rows = write_events(tmp_path / "in")
    with script(tmp_path / "tmp", "-m", "topologies.amid", str(tmp_path)) as process:
        eventually(lambda: (tmp_path / "noted").exists() or process.poll() is not None, "the third file")
        kill_group(process)
        assert killed(process), "the topology ended before the fault"
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    assert len(before) == 3
    # It reads what was written before the fault, although its micro-batch was not committed.
    stream, checkpoint = read_stream(spark_session, tmp_path / "out"), tmp_path / "reader"
    early = read_all(stream, checkpoint)
    with LocalCluster(spark_session) as cluster:
        cluster.submit_topology("amid", amid.conf_of(str(tmp_path)), amid.halting(str(tmp_path)))

        def done():
            info = cluster.get_topology_info("amid")
            assert info.error is None
            written = spark_session.read.parquet(str(tmp_path / "out"))
            return info.pending == 0 and written.count() >= len(rows)

        eventually(done, "every click written")
    assert 0 < early.count() < len(rows)
    once = early.union(read_all(stream, checkpoint))
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    assert before.items() < after.items(), "no file is written twice"
    expected = expected_frame(spark_session, rows)
    assert_df_equality(once, expected, ignore_row_order=True, ignore_nullable=True)


def test_what_can_not_be_replayed_or_read_here_is_refused_with_a_sentence(spark_session, tmp_path) -> None:
    rate = spark_session.readStream.format("rate").load()
    python = sf.udf(lambda value: value).asNondeterministic()
    socket = spark_session.readStream.format("socket").options(host="127.0.0.1", port=9)
    refused = {
        "not a streaming DataFrame": spark_session.range(3),
        "Aggregate, which keeps state or reorders rows: aggregate in a bolt": rate.groupBy("value").count(),
        "join in a bolt, such as EnrichBolt": rate.join(spark_session.range(9), rate["value"] == sf.col("id")),
        "EventTimeWatermark, which": rate.withWatermark("timestamp", "1 second"),
        "deduplicate in a bolt": rate.dropDuplicates(["value"]),
        "Repartition, which": rate.repartition(2),
        "GlobalLimit, which": rate.limit(3),
        r"rand\(.*gives other values": rate.withColumn("r", sf.rand()),
        "<lambda>.*gives other values": rate.select(python("value")),
        "can't be read again": socket.load(),
    }
    for reason, frame in refused.items():
        with pytest.raises(ConfigError, match=f"a topology can't read this DataFrame: .*{reason}"):
            DataFrameSpout(frame)
    for fields, reason in {
        ("valu",): 'no column "valu"; there are timestamp, value',
        ("value", "string"): '"value" is bigint, and the field is declared as string',
    }.items():
        with pytest.raises(ConfigError, match=reason):
            DataFrameSpout(rate, dict([fields]) if len(fields) > 1 else fields)
    with pytest.raises(ConfigError, match="a DataFrame, or a function"):
        DataFrameSpout(None)
    with pytest.raises(ConfigError, match="name its fields"):
        DataFrameSpout(lambda spark: rate)
    spout = DataFrameSpout(rate.select("value"))
    with pytest.raises(SetupError, match="of another session"):
        spout.read(spark_session.newSession())
    with pytest.raises(SetupError, match="the function must return a DataFrame, not NoneType"):
        DataFrameSpout(lambda spark: None, ["value"]).read(spark_session)
    # In another process there is a copy alone.
    copy = pickle.loads(pickle.dumps(spout))
    assert copy.read(spark_session).columns == ["value"]
    del spout
    gc.collect()
    with pytest.raises(SetupError, match="give the spout a function"):
        copy.read(spark_session)


def test_a_stream_without_types_or_with_others_than_before_does_not_start(spark_session, tmp_path) -> None:
    rate = spark_session.readStream.format("rate").load()

    def start(fields, types=None):
        topology = amid.TopologyBuilder()
        topology.set_spout("numbers", DataFrameSpout(rate, fields))
        topology.set_bolt("out", StreamBolt(tmp_path / "out", types)).shuffle_grouping("numbers")
        return compile_topology(topology.create_topology()).start(spark_session, "amid")

    with pytest.raises(SetupError, match='bolt "out" can\'t write: field "value" has no type: declare it'):
        start(Fields("value"))
    with pytest.raises(SetupError, match="has no stream"):
        read_stream(spark_session, tmp_path / "nothing")
    start(Fields("value"), {"value": "long"}).stop()
    with pytest.raises(SetupError, match="a stream with other types"):
        start(Fields({"value": "long", "timestamp": "timestamp"}))
    with pytest.raises(ConfigError, match="mergeSchema can't be set here"):
        read_stream(spark_session, tmp_path / "out", {"mergeSchema": True})
