"""Which directories may be a checkpoint, and which one a reset may empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.spark.checkpoint.directory import Checkpoint, reset_checkpoint


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def photos(folder: Path) -> None:
    folder.mkdir()
    (folder / "me.png").write_bytes(b"png")


def another_query(folder: Path) -> None:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text("{}")


def a_folder_called_storm(folder: Path) -> None:
    (folder / "storm").mkdir(parents=True)
    (folder / "storm" / "lightning.jpg").write_bytes(b"jpg")


@pytest.mark.parametrize("make", [photos, another_query])
def test_a_foreign_folder_is_refused_and_left_as_it_is(tmp_path: Path, make: object) -> None:
    folder = tmp_path / "mine"
    make(folder)  # type: ignore[operator]
    before = tree(folder)
    with pytest.raises(
        CheckpointError, match=r"mine is (no topology's checkpoint|the checkpoint of another Spark query)"
    ):
        Checkpoint(folder)
    assert tree(folder) == before


@pytest.mark.parametrize("make", [photos, another_query, a_folder_called_storm])
def test_a_reset_refuses_a_foreign_folder_and_leaves_it_as_it_is(tmp_path: Path, make: object) -> None:
    folder = tmp_path / "mine"
    make(folder)  # type: ignore[operator]
    before = tree(folder)
    with pytest.raises(CheckpointError, match="mine"):
        reset_checkpoint(folder)
    assert tree(folder) == before


def test_a_new_an_empty_and_an_opened_folder_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    for _ in range(2):
        store = Checkpoint(folder)
        with pytest.raises(CheckpointError, match="in use"):
            reset_checkpoint(folder)
        store.close()
    reset_checkpoint(folder)
    assert tree(folder) == []
    Checkpoint(folder).close()


def test_a_damaged_manifest_can_be_reset(tmp_path: Path) -> None:
    Checkpoint(tmp_path).close()
    (tmp_path / "storm" / "manifest.json").write_text("{")
    reset_checkpoint(tmp_path)
    assert tree(tmp_path) == []


def test_a_temporary_checkpoint_goes_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Checkpoint(None)
    assert store.path.is_dir()
    store.close()
    assert tree(tmp_path) == []
