"""The modules that read and write Delta tables, each by itself."""

from __future__ import annotations

import datetime
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from storm_on_spark.api.sink import SinkContext
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple
from storm_on_spark.xd.modules import ModuleType, OptionError, find_module


def made(type: ModuleType, **options: str) -> Any:  # noqa: A002
    return find_module(type, "delta").make(options, "s")


def message(payload: Any) -> Any:
    return make_tuple([payload, {}], ["payload", "headers"])


def append(table: Path, *numbers: int) -> None:
    write_deltalake(str(table), pa.table({"id": list(numbers)}), mode="append")


def reading(**options: str) -> SpoutTester:
    """Returns a source for which time flies: it looks for new versions at every call."""
    source = made("source", **options)
    source.now = itertools.count(0, 60).__next__
    return SpoutTester(source)


def rows(tester: SpoutTester, calls: int = 20) -> list[Any]:
    return [tuple(emission.values) for emission in tester.next_tuple(calls=calls)]


def test_rows_are_emitted_and_then_those_that_are_appended(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    tester = reading(table=str(table))
    assert rows(tester) == []
    append(table, 1, 2)
    append(table, 3)
    assert sorted(row[0]["id"] for row in rows(tester)) == [1, 2, 3]
    append(table, 4)
    append(table, 5)
    assert rows(tester) == [({"id": 4}, {"delta_version": 2}), ({"id": 5}, {"delta_version": 3})]


def test_a_source_goes_on_behind_the_last_row_that_was_saved(tmp_path: Path) -> None:
    append(tmp_path, *range(10))
    append(tmp_path, *range(10, 2_500))
    source = made("source", table=str(tmp_path), startingVersion="1")
    first = rows(SpoutTester(source), 1_200)
    again = made("source", table=str(tmp_path), startingVersion="1")
    tester = SpoutTester(again)
    again.state_holder.__setstate__(source.state_holder.__getstate__())
    found = [row[0]["id"] for row in [*first, *rows(tester, 3_000)]]
    assert found == list(range(10, 2_500))


def test_what_arranges_rows_anew_is_passed_over_and_what_changes_them_is_refused(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    DeltaTable(str(tmp_path)).optimize.compact()
    append(tmp_path, 3)
    tester = reading(table=str(tmp_path), startingVersion="1")
    assert [row[0]["id"] for row in rows(tester)] == [2, 3]
    DeltaTable(str(tmp_path)).delete("id = 1")
    with pytest.raises(ValueError, match="version 4 changes or removes rows"):
        rows(tester)


def test_values_are_those_that_messages_have(tmp_path: Path) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    write_deltalake(str(tmp_path), pa.table({"payload": ["a"]}))
    assert rows(SpoutTester(made("source", table=str(tmp_path))))[0] == ("a", {"delta_version": 0})
    other = tmp_path / "other"
    write_deltalake(str(other), pa.table({"at": [when], "list": [[1, 2]]}), partition_by=["at"])
    (found,) = rows(SpoutTester(made("source", table=str(other))))
    assert found[0] == {"at": "2026-01-02T03:04:05+00:00", "list": [1, 2]}


def write(sink: Any, *payloads: Any) -> list[str]:
    """Writes payloads as one step; returns what could not be taken."""
    said = []
    with BoltTester(sink) as tester:
        for payload in payloads:
            try:
                tester.bolt.execute(message(payload))
            except ValueError as error:
                said.append(str(error))
        tester.execute()
        assert len(tester.collector.acked) == len(payloads) - len(said)
        written = tester.bolt.take_written()
    sink.open_sink(SinkContext(None, "s"))
    sink.write([written], SinkContext(None, "s", 1))
    return said


def test_the_sink_appends_a_row_for_each_message(tmp_path: Path) -> None:
    table = str(tmp_path / "new")
    given = [{"id": number, "price": None, "tags": ["a"]} for number in range(3)]
    sink = made("sink", table=table, columns="id long, price decimal(10, 2), tags array<string>")
    said = write(sink, *given, {"id": "x", "price": None, "tags": []}, "x")
    assert [text.partition(" in ")[0] for text in said] == [
        "('x', None, []) does not fit",
        "expected a map with id, price, tags, got 'x'",
    ]
    found = DeltaTable(table)
    assert (found.version(), sorted(found.to_pyarrow_table()["id"].to_pylist())) == (1, [0, 1, 2])


def test_a_table_of_payloads_is_the_default(tmp_path: Path) -> None:
    assert write(made("sink", table=str(tmp_path)), "a", 1, {"b": 2}) == []
    assert DeltaTable(str(tmp_path)).to_pyarrow_table()["payload"].to_pylist() == ["a", "1", '{"b": 2}']


@pytest.mark.parametrize(
    ("type", "options"),
    [
        ("source", {"table": "s3://bucket/table"}),
        ("source", {"table": "t", "startingVersion": "x"}),
        ("sink", {"table": "t", "columns": "id"}),
        ("sink", {"table": "t", "columns": "id text"}),
        ("sink", {"table": "t", "columns": "id long, id long"}),
        ("sink", {}),
    ],
)
def test_options_that_make_no_sense(type: ModuleType, options: dict[str, str]) -> None:  # noqa: A002
    with pytest.raises(OptionError):
        made(type, **options)


PARTITIONS = ["a b", "50%", "ä", "a/b", "x:y", "p%20q", None, "tr.", "k=v", "#1", "2024-01-01 10:00:00", "日本", "a?b"]


@pytest.mark.parametrize("start", ["-1", "1"])
def test_rows_of_any_partition_are_emitted(tmp_path: Path, start: str) -> None:
    for number, key in enumerate(["first", *PARTITIONS]):
        rows_of = pa.table({"k": pa.array([key], pa.string()), "n": [number]})
        write_deltalake(str(tmp_path), rows_of, mode="append", partition_by=["k"])
    with reading(table=str(tmp_path), startingVersion=start) as tester:
        found = [row["k"] for row, _ in rows(tester, 200)]
    assert Counter(found) == Counter(PARTITIONS if start == "1" else ["first", *PARTITIONS])


@pytest.mark.parametrize("folder", ["a b", "50%25", "é", "x%3Ay", "a#b"])
def test_a_path_in_the_log_is_decoded_once(tmp_path: Path, folder: str) -> None:
    """As Spark writes them: the log encodes the name of the folder, which may have its own escapes, as in a URI."""
    write_deltalake(str(tmp_path), pa.table({"k": ["first"], "n": [0]}), partition_by=["k"])
    path = f"k={folder}/part-0.parquet"
    (tmp_path / path).parent.mkdir()
    pq.write_table(pa.table({"n": [7]}), tmp_path / path)
    size = (tmp_path / path).stat().st_size
    add = {"path": quote(path, safe="/="), "partitionValues": {"k": unquote(folder)}, "size": size}
    actions = [{"commitInfo": {}}, {"add": {**add, "modificationTime": 1, "dataChange": True}}]
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))
    with reading(table=str(tmp_path), startingVersion="1") as tester:
        assert [row for row, _ in rows(tester)] == [{"n": 7, "k": unquote(folder)}]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\r"])
def test_texts_with_line_separators_are_emitted(tmp_path: Path, separator: str) -> None:
    text = f"one{separator}two"
    for payload in ("first", text):
        write_deltalake(str(tmp_path), pa.table({"payload": [payload]}), mode="append")
    with reading(table=str(tmp_path), startingVersion="0") as tester:
        assert [row for row, _ in rows(tester)] == ["first", text]
