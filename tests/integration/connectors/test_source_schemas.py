"""Files whose columns change while a topology reads them: what goes on, and what ends it with which words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from storm_on_spark import BaseBasicBolt, TopologyBuilder, compile_topology
from storm_on_spark.api.component import NativeSpout
from storm_on_spark.connectors.delta import DeltaSpout
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.testing import running_topology


class End(BaseBasicBolt):
    stateless = True

    def execute(self, tup, collector): ...


SCHEMA = "word STRING, n BIGINT"


def put(folder: Path, name: str, content: bytes) -> None:
    """Writes a file that appears whole."""
    folder.mkdir(exist_ok=True)
    part = folder.parent / f"{folder.name}-{name}.part"
    part.write_bytes(content)
    part.rename(folder / name)


def parquet(**columns: pa.Array) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), out)
    return out.getvalue().to_pybytes()


def lines(*rows: object) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def test_files_with_other_columns_are_read_by_name_and_what_does_not_fit_is_none(spark_session, tmp_path) -> None:
    put(tmp_path / "json", "1", lines({"word": "to", "n": 1}))
    put(tmp_path / "csv", "1", b"word,n\nto,1\n")
    put(tmp_path / "parquet", "1", parquet(word=pa.array(["to"]), n=pa.array([1])))
    builder = TopologyBuilder()
    for name in ("json", "csv", "parquet"):
        builder.set_spout(name, FileSpout(tmp_path / name, name, SCHEMA, {"header": True} if name == "csv" else None))
    with running_topology(builder.create_topology(), spark=spark_session) as running:
        running.wait_until(lambda captured: all(captured.values(name) for name in ("json", "csv", "parquet")))
        put(
            tmp_path / "json", "2", lines({"n": 2, "more": True, "word": "be"}, {"word": "or"}, {"word": 5, "n": "six"})
        )
        put(tmp_path / "csv", "2", b"word,n,more\nbe,2,x\nor\nfive,six\n")
        put(
            tmp_path / "parquet",
            "2",
            parquet(n=pa.array([2], pa.int32()), more=pa.array([True]), word=pa.array(["be"])),
        )
        put(tmp_path / "parquet", "3", parquet(word=pa.array(["or"])))
        captured = running.wait_until(
            lambda captured: (
                len(captured.values("json")) == 4
                and len(captured.values("csv")) == 4
                and len(captured.values("parquet")) == 3
            )
        )
    assert captured.values("json") == [("to", 1), ("be", 2), ("or", None), ("5", None)]
    assert captured.values("csv") == [("to", 1), ("be", 2), ("or", None), ("five", None)]
    assert sorted(captured.values("parquet")) == [("be", 2), ("or", None), ("to", 1)]


def ends(spark, spout: NativeSpout, checkpoint: Path, change: Callable[[], None]) -> str:
    """Returns with which words a topology ends once it has acked a row and something has changed."""
    builder = TopologyBuilder()
    builder.set_spout("rows", spout)
    builder.set_bolt("end", End()).shuffle_grouping("rows")
    query = compile_topology(builder.create_topology(), {}).start(spark, name="schemas", checkpoint=checkpoint)
    try:
        assert query.wait_until(lambda: query.status_info().acked > 0, 60), query.failure
        change()
        assert query.wait_until(lambda: query.failure is not None, 60)
    finally:
        query.stop()
    return str(query.failure)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_cannot_be_read_with_the_columns_ends_the_topology(spark_session, tmp_path, kind) -> None:
    folder = tmp_path / "in"
    good = {"parquet": parquet(word=pa.array(["to"]), n=pa.array([1])), "csv": b"word,n\nto,1\n"}
    bad = {"parquet": parquet(word=pa.array(["be"]), n=pa.array(["two"])), "csv": b"n,word\n2,be\n"}
    options = {"header": True, "enforceSchema": False} if kind == "csv" else None
    put(folder, "1", good[kind])
    spout = FileSpout(folder, kind, SCHEMA, options)
    words = ends(spark_session, spout, tmp_path / "checkpoint", lambda: put(folder, "2", bad[kind]))
    expected = {
        "parquet": "column: [n], physicalType: BINARY, logicalType: bigint",
        "csv": "CSV header does not conform to the schema",
    }
    assert expected[kind] in words


def test_a_delta_table_whose_columns_change_ends_the_topology_with_what_to_do(spark_session, tmp_path) -> None:
    table, checkpoint = str(tmp_path / "table"), tmp_path / "checkpoint"
    spark_session.conf.set("spark.databricks.delta.snapshotPartitions", "1")

    def put_rows(mode: str, **columns: pa.Array) -> None:
        schema_mode = "merge" if mode == "append" else "overwrite"
        write_deltalake(table, pa.table(columns), mode=mode, schema_mode=schema_mode)

    def ends_with(change: Callable[[], None]) -> str:
        return ends(spark_session, DeltaSpout(table, ["word", "n"]), checkpoint, change)

    put_rows("append", word=pa.array(["to"]), n=pa.array([1]))
    added = ends_with(lambda: put_rows("append", word=pa.array(["be"]), n=pa.array([2]), more=pa.array([True])))
    assert "Detected schema change in version 1; the table has other columns: start the topology again" in added
    # It acks the row of the new version before it ends once more.
    other_type = ends_with(lambda: put_rows("overwrite", word=pa.array(["or"]), n=pa.array(["three"])))
    assert "Detected schema change in version 2; the table has other columns" in other_type
