"""A checkpoint in a store is removed when it is nobody's, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.storage import LocalPlace, LocalStorage
from storm_on_spark.spark.checkpoint import stored
from storm_on_spark.spark.checkpoint.location import location_of
from storm_on_spark.spark.checkpoint.stored import StoredCheckpoint, reset_stored

URL = "s3a://bucket/count"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    # A directory keeps the contract of a store, which has its own tests on real ones.
    monkeypatch.setattr(stored, "place_of", lambda location, spark: LocalPlace(str(tmp_path)))
    return LocalStorage(tmp_path)


def names(root: LocalStorage) -> list[str]:
    return [found.name for found in root.list_folder(deep=True)]


def reset() -> None:
    reset_stored(URL, object())  # type: ignore[arg-type]


def test_all_is_removed_but_the_owners_whose_numbers_go_on(root: LocalStorage):
    first = StoredCheckpoint(location_of(URL), LocalPlace(root.url))
    first.close()
    for name in ("metadata", "offsets/0", "state/0/0/1.changelog", "storm/manifest.json", "storm/spouts/1/a.log"):
        root.put(name, b"{")

    reset()

    [owner] = names(root)
    assert owner.startswith("storm/owners/")
    assert first.fence is not None
    second = StoredCheckpoint(location_of(URL), LocalPlace(root.url))
    assert second.fence is not None
    assert second.fence.number > first.fence.number
    second.close()


def test_one_that_is_in_use_stays(root: LocalStorage):
    running = StoredCheckpoint(location_of(URL), LocalPlace(root.url))
    root.put("storm/manifest.json", b"{}")
    before = names(root)
    with pytest.raises(CheckpointError, match="is in use by a running topology"):
        reset()
    running.close()
    assert names(root) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("photos/me.png", "'photos/me.png' in it is not part"), ("metadata", "not a topology's checkpoint")],
)
def test_something_else_stays(root: LocalStorage, name: str, sentence: str):
    root.put(name, b"mine")
    with pytest.raises(CheckpointError, match=sentence):
        reset()
    assert names(root) == [name]


def test_nothing_is_made_where_nothing_is(root: LocalStorage):
    reset()
    assert names(root) == []
