"""Null lists and maps of Spark's rows: sent without null, and there again in Python."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, MapType, StructType

from storm_on_spark import Fields, TopologyBuilder
from storm_on_spark.connectors.files import FileSpout
from storm_on_spark.spark.query.null_lists import restored, without_nulls
from storm_on_spark.testing import running_topology

SCHEMA = (
    "n BIGINT, `a.b` ARRAY<STRING>, m MAP<STRING, BIGINT>, plain STRUCT<x: STRING>, "
    "deep STRUCT<x: STRING, tags: ARRAY<STRING>, more: STRUCT<m: MAP<STRING, BIGINT>, y: BIGINT>>"
)
ROWS = [
    (1, ["a", None], {"k": 1}, ("x",), ("x", ["t"], ({"k": 1}, 2))),
    (2, None, None, None, None),
    (3, [], {}, (None,), (None, None, None)),
    (4, ["b"], None, ("y",), ("y", None, (None, 3))),
    (None, None, {"l": None}, None, ("z", [], ({}, None))),
]


def _nullable(kind: StructType) -> list[str]:
    """Returns the lists and maps that may be null, also those in structs."""
    found = []
    for field in kind.fields:
        if isinstance(field.dataType, StructType):
            found += _nullable(field.dataType)
        elif isinstance(field.dataType, (ArrayType, MapType)) and field.nullable:
            found.append(field.name)
    return found


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2] * 3, ROWS[:1]], ids=["some are null", "all are null", "none is null"])
def test_no_list_is_null_where_spark_sends_it_and_python_has_the_rows_as_they_were(spark_session, rows) -> None:
    frame = spark_session.createDataFrame(rows, SCHEMA).coalesce(1)
    sent, layout = without_nulls(frame)
    assert layout is not None
    assert _nullable(sent.schema) == []
    found = pa.Table.from_batches(restored(iter(sent.toArrow().to_batches()), layout))
    assert found.schema.names == frame.columns
    assert found.to_pylist() == frame.toArrow().to_pylist()


def test_rows_without_lists_are_sent_as_they_are(spark_session) -> None:
    frame = spark_session.createDataFrame(ROWS, SCHEMA).select("n", "plain")
    assert without_nulls(frame) == (frame, None)


def test_a_spout_emits_none_for_a_list_that_is_null(nothing_left_behind, spark_session, tmp_path) -> None:
    spark_session.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "rows"))
    expected = [tuple(row.values()) for row in spark_session.createDataFrame(ROWS, SCHEMA).toArrow().to_pylist()]
    spout = FileSpout(tmp_path / "rows", "parquet", SCHEMA)
    assert spout.tuple_streams() == {"default": Fields("n", "a.b", "m", "plain", "deep")}
    builder = TopologyBuilder()
    builder.set_spout("rows", spout)
    with running_topology(builder.create_topology(), spark=spark_session) as running:
        captured = running.wait_until(lambda captured: len(captured.values("rows")) == len(ROWS))
    assert sorted(map(repr, map(tuple, captured.values("rows")))) == sorted(map(repr, expected))
