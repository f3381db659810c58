"""`FileBolt` without Spark: what it refuses, and what its files are called and hold."""

from __future__ import annotations

import json
import math

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
    with pytest.raises(ConfigError, match="json, csv"):
        FileBolt(tmp_path, ["word"], "orc")  # type: ignore[arg-type]


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
