"""Rows without null lists, as Spark would send them, become what they were; Spark's part is an integration test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from storm_on_spark.spark.query.null_lists import Filled, Opened, Part, _part, restored

TAGS = ArrayType(StringType())
SCHEMA = StructType(
    [
        StructField("n", LongType()),
        StructField("tags", TAGS),
        StructField("kept", TAGS, nullable=False),
        StructField("plain", StructType([StructField("x", LongType())])),
        StructField(
            "deep",
            StructType(
                [
                    StructField("tags", TAGS, nullable=False),
                    StructField("more", StructType([StructField("m", MapType(StringType(), LongType()))])),
                ]
            ),
        ),
    ]
)
WORDS = st.lists(st.none() | st.sampled_from(["a", "b"]), max_size=2)
NUMBERS = st.none() | st.integers(0, 9)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": NUMBERS,
            "tags": st.none() | WORDS,
            "kept": WORDS,
            "plain": st.none() | st.fixed_dictionaries({"x": NUMBERS}),
            "deep": st.none()
            | st.fixed_dictionaries(
                {
                    "tags": WORDS,
                    "more": st.none()
                    | st.fixed_dictionaries(
                        {"m": st.none() | st.lists(st.tuples(st.sampled_from("kl"), NUMBERS), max_size=1)}
                    ),
                }
            ),
        }
    ),
    min_size=1,
    max_size=6,
)


def sent(values: list[Any], kind: DataType, arrow: pa.DataType, part: Part) -> list[pa.Array]:
    """Returns the columns in which Spark sends one, done in plain Python."""
    if isinstance(part, Filled):
        return [pa.array([value or [] for value in values], arrow), pa.array([value is None for value in values])]
    if isinstance(part, Opened):
        found = [pa.array([value is None for value in values])]
        for field, inner in zip(kind.fields, part.parts, strict=True):
            below = [None if value is None else value[field.name] for value in values]
            found += sent(below, field.dataType, arrow.field(field.name).type, inner)
        return found
    return [pa.array(values, arrow)]


def test_only_what_may_be_null_is_sent_in_another_form() -> None:
    assert _part(SCHEMA, nullable=False) == Opened(
        ("n", "tags", "kept", "plain", "deep"),
        (None, Filled(), None, None, Opened(("tags", "more"), (Filled(), Opened(("m",), (Filled(),))))),
    ), "a list that is never null is so in a struct that is"


@settings(max_examples=examples(30))
@given(ROWS)
def test_rows_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    layout = _part(SCHEMA, nullable=False)
    assert isinstance(layout, Opened)
    schema = to_arrow_schema(SCHEMA)
    columns = []
    for field, part in zip(SCHEMA.fields, layout.parts, strict=True):
        columns += sent([row[field.name] for row in rows], field.dataType, schema.field(field.name).type, part)
    columns.append(pa.array([7] * len(rows)))
    batch = pa.RecordBatch.from_arrays(columns, [*(f"c{number}" for number in range(len(columns) - 1)), "partition"])
    (found,) = restored(iter([batch]), layout)
    assert found.schema.names == [*SCHEMA.names, "partition"]
    assert found.drop_columns(["partition"]).to_pylist() == pa.RecordBatch.from_pylist(rows, schema).to_pylist()
    assert found.column(found.num_columns - 1).to_pylist() == [7] * len(rows)
