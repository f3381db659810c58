"""Dead letters of sinks: which rows are refused, and what the files have."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark import ConfigError, SetupError, SinkContext
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters, Refused, refused_rows
from storm_on_spark.connectors.sinks.tables import last_among, rows_at

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.booleans()), max_size=40)


@given(ROWS, st.booleans(), st.booleans())
def test_each_key_has_the_last_row_that_is_taken_as_if_rows_were_written_one_by_one(rows, by_key, nulls_differ):
    table = pa.table(
        {"key": [key for key, _ in rows], "good": [good for _, good in rows], "n": range(len(rows))},
        schema=pa.schema([("key", pa.string()), ("good", pa.bool_()), ("n", pa.int64())]),
    )
    written = {}

    def place(row):
        differs = not by_key or (nulls_differ and row["key"] is None)
        return ("row", row["n"]) if differs else ("key", row["key"])

    def write(part):
        found = rows_at(table, part).to_pylist()
        if not all(row["good"] for row in found):
            return ValueError("bad")
        # A row of an earlier part never replaces that of a later one.
        assert all(place(row) not in written for row in found)
        written.update({place(row): row["n"] for row in found})
        return None

    last = partial(last_among, table, ["key"] if by_key else [], nulls_differ=nulls_differ)
    refused = [number for number, _ in refused_rows(table.num_rows, write, last)]
    expected = {place(row): row["n"] for row in table.to_pylist() if row["good"]}
    assert written == expected
    # Bad rows that a later good one replaces are nobody's concern.
    bad = {row["n"] for row in table.to_pylist() if not row["good"] and expected.get(place(row), -1) < row["n"]}
    assert sorted(refused) == sorted(bad)


def context(**more):
    return replace(SinkContext(None, "words-1/out", 7, plan=3), **more)


def test_a_file_has_any_value_as_json_and_one_line_for_each_row(tmp_path):
    letters, reported = DeadLetters(tmp_path / "new", "the table t"), []
    letters.open()
    row = {
        "text": "a\u2028b\n",
        "bytes": b"\x80",
        "day": datetime.date(2026, 2, 28),
        "price": Decimal("1.50"),
        "nan": float("nan"),
        "list": [1, None],
    }
    assert letters.keep((each for each in [Refused(row, "bad"), Refused({"n": 1}, "worse")]), context())
    letters.finish(context(report=reported.append), kept=True)
    (file,) = (tmp_path / "new").iterdir()
    first, second = map(json.loads, file.read_bytes().split(b"\n")[:-1])
    assert first == {
        "version": 1,
        "micro_batch": 7,
        "error": "bad",
        "row": {
            "text": "a\u2028b\n",
            "bytes": {"hex": "80"},
            "day": "2026-02-28",
            "price": "1.50",
            "nan": "nan",
            "list": [1, None],
        },
    }
    assert second["row"] == {"n": 1}
    (told,) = reported
    assert told.startswith("the table t refuses 2 rows, the first: bad (given {")
    assert told.endswith(f"See {file}")


def test_a_folder_that_cannot_be_made_is_said_at_the_start(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="for dead letters can't be made"):
        DeadLetters(tmp_path / "file" / "folder", "the table t").open()
    with pytest.raises(ConfigError, match="a folder is a path"):
        DeadLetters("s3://bucket/refused", "the table t")
