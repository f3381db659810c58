"""`FileBolt` without Spark: what it refuses, and what its files are called and hold."""

from __future__ import annotations

import datetime
import json
import math

import pyarrow.parquet as pq
import pytest

from storm_on_spark import ConfigError
from storm_on_spark.connectors.files import FileBolt
from storm_on_spark.testing import BoltTester, make_tick_tuple, make_tuple


@pytest.mark.parametrize("folder", ["", "s3a://bucket/out", "file:/tmp/out", "a\0b"])
def test_a_folder_is_a_path(folder):
    with pytest.raises(ConfigError, match="a folder is a path"):
        FileBolt(folder, ["word"])


@pytest.mark.parametrize("fields", ["word", [], ["a", "a"], [""], [1]])
def test_fields_are_names(tmp_path, fields):
    with pytest.raises(ConfigError, match="fields are one or more names"):
        FileBolt(tmp_path, fields)


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(ConfigError, match="json, csv, parquet"):
        FileBolt(tmp_path, ["word"], "orc")  # type: ignore[arg-type]


def test_what_the_next_number_has_in_any_partition_is_taken_back(tmp_path):
    def bolt() -> FileBolt:
        return FileBolt(tmp_path, ["n", "word"], partition_by=["word"])

    BoltTester(bolt()).execute(*[make_tuple([n, word], ["n", "word"]) for n, word in ((1, "a"), (2, "b"))])
    other = tmp_path / "word=a" / "part-of-another.json"
    other.touch()
    again = bolt()
    BoltTester(again)
    again.take_back()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [other]


@pytest.mark.parametrize("value", [object(), math.nan, b"bytes"])
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_a_value_that_the_format_lacks_is_named(tmp_path, value, format_):
    tester = BoltTester(FileBolt(tmp_path, ["word"], format_))
    with pytest.raises(Exception, match=r"can't be written as JSON|CSV takes"):
        tester.execute(make_tuple([value], ["word"]))
    assert list(tmp_path.iterdir()) == []


def test_each_micro_batch_with_tuples_gets_a_file_and_ticks_none(tmp_path):
    # The tester ends a micro-batch after each tuple.
    tester = BoltTester(FileBolt(tmp_path / "out", ["n", "word"]))
    tester.execute(make_tuple(["a", 1, "left out"], ["word", "n", "more"]))
    tester.execute(make_tick_tuple())
    tester.execute(make_tuple(["ü", 2, "left out"], ["word", "n", "more"]))

    files = sorted((tmp_path / "out").iterdir())
    assert [file.name[-16:] for file in files] == ["-0000000000.json", "-0000000001.json"]
    assert [json.loads(file.read_text()) for file in files] == [{"n": 1, "word": "a"}, {"n": 2, "word": "ü"}]


def test_partitions_are_folders_without_their_fields(tmp_path):
    bolt = FileBolt(tmp_path, ["n", "day", "word"], "csv", partition_by=["day", "word"])
    tester = BoltTester(bolt)
    day = datetime.date(2026, 2, 28)
    for values in ((1, day, "a/b"), (2, None, ""), (3, True, 7)):
        tester.execute(make_tuple(values, ["n", "day", "word"]))
    found = {str(file.parent.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("part-*")}
    assert found == {
        "day=2026-02-28/word=a%2Fb": "n\n1\n",
        "day=__HIVE_DEFAULT_PARTITION__/word=__HIVE_DEFAULT_PARTITION__": "n\n2\n",
        "day=true/word=7": "n\n3\n",
    }
    assert not list(tmp_path.rglob(".*")), "nothing half-written is left"


def test_a_micro_batch_that_is_written_again_replaces_its_files_in_all_partitions(tmp_path):
    for _ in range(2):
        tester = BoltTester(FileBolt(tmp_path, {"n": "int", "word": "string"}, "parquet", partition_by=["word"]))
        tester.execute(*[make_tuple([n, word], ["n", "word"]) for n, word in ((1, "a"), (2, "b"), (3, "a"))])
    found = {file.parent.name: pq.ParquetFile(file).read().to_pylist() for file in tmp_path.rglob("part-*")}
    assert found == {"word=a": [{"n": 1}, {"n": 3}], "word=b": [{"n": 2}]}


@pytest.mark.parametrize("value", ["many", 2**70, object()])
def test_a_value_that_does_not_fit_in_a_column_is_named(tmp_path, value):
    tester = BoltTester(FileBolt(tmp_path, {"n": "long"}, "parquet"))
    with pytest.raises(Exception, match="a tuple doesn't fit in its columns"):
        tester.execute(make_tuple([value], ["n"]))


@pytest.mark.parametrize("value", [1.5, b"a", datetime.datetime.max.replace(tzinfo=datetime.timezone.utc), [1]])
def test_a_partition_has_a_name(tmp_path, value):
    tester = BoltTester(FileBolt(tmp_path, ["n", "at"], partition_by=["at"]))
    with pytest.raises(Exception, match="partitions are by text, whole numbers"):
        tester.execute(make_tuple([1, value], ["n", "at"]))


@pytest.mark.parametrize("given", ["day", ["day"], ["word", "word"], ["word", "n"], [1]])
def test_partitions_are_by_some_of_the_fields(tmp_path, given):
    with pytest.raises(ConfigError, match="partitions are by some of the fields n, word"):
        FileBolt(tmp_path, ["n", "word"], partition_by=given)


@pytest.mark.parametrize(
    ("fields", "format_", "message"),
    [
        (["word"], "parquet", "the fields of parquet files are given as types"),
        ({"word": "string"}, "json", "the fields of json files are given as names"),
        ({"word": "text"}, "parquet", '"text" is not a type'),
    ],
)
def test_parquet_has_types_and_the_other_formats_have_none(tmp_path, fields, format_, message):
    with pytest.raises(ConfigError, match=message):
        FileBolt(tmp_path, fields, format_)


def test_files_without_types_are_no_stream(tmp_path):
    with pytest.raises(ConfigError, match="json files have none: write parquet"):
        FileBolt(tmp_path, ["word"]).read_stream(None)  # type: ignore[arg-type]
