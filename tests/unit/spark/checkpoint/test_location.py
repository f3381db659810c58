"""Where a checkpoint is."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.storage import LocalPlace
from storm_on_spark.spark.checkpoint.location import location_of, place_of


def test_a_directory_is_reached_without_a_session(tmp_path: Path):
    location = location_of((tmp_path / "a b").as_uri())

    assert (location.path, location.url, location.scheme) == (tmp_path / "a b", f"file:{tmp_path}/a b", "file")
    assert place_of(location, None) == LocalPlace(str(tmp_path / "a b"))
    assert location_of("relative").path == Path("relative").absolute()


@pytest.mark.parametrize(
    "url",
    ["s3a://bucket/a/b", "hdfs://host:8020/a", "hdfs:///a", "abfss://box@account.dfs.core.windows.net/a", "gs://b/c"],
)
def test_a_store_is_a_url(url: str):
    location = location_of(url + "/")

    assert (location.path, location.url) == (None, url)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://bucket/a", "write s3a://"),
        ("s3n://bucket/a", "write s3a://"),
        ("gs://bucket", "must be a folder"),
        ("hdfs://host/", "must be a folder"),
        ("s3a://bucket/a/../b", "must be a folder"),
        ("s3a://bucket/a?x=1", "must be a folder"),
        ("s3a://bucket/a b", "other characters"),
        ("s3a://key:hush@bucket/a", "a user or a password"),
    ],
)
def test_what_makes_no_sense_is_refused_without_telling_a_secret(url: str, sentence: str):
    with pytest.raises(CheckpointError, match=sentence) as caught:
        location_of(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["gs://b/c", "abfss://box@account.dfs.core.windows.net/a"])
def test_a_store_that_cant_be_reached_is_refused_with_a_way_out(url: str):
    with pytest.raises(CheckpointError, match="only s3a://, hdfs:// and directories can be used; mount"):
        place_of(location_of(url), object())  # type: ignore[arg-type]
