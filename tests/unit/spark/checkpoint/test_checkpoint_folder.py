"""Which directories may be a checkpoint, and which one a reset may empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.spark.checkpoint.directory import Checkpoint, reset_checkpoint
from storm_on_spark.spark.checkpoint.owner import Owner, OwnerFence


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def photos(folder: Path) -> None:
    folder.mkdir()
    (folder / "me.png").write_bytes(b"png")


def another_query(folder: Path) -> None:
    (folder / "offsets").mkdir(parents=True)
    (folder / "metadata").write_text("{}")


LEFT = ["storm", "storm/lock"]
"""A reset leaves the lock file, because other processes may have it open."""


def a_folder_called_storm(folder: Path) -> None:
    (folder / "storm").mkdir(parents=True)
    (folder / "storm" / "lightning.jpg").write_bytes(b"jpg")


@pytest.mark.parametrize("make", [photos, another_query])
def test_a_foreign_folder_is_refused_and_left_as_it_is(tmp_path: Path, make: object) -> None:
    folder = tmp_path / "mine"
    make(folder)  # type: ignore[operator]
    before = tree(folder)
    with pytest.raises(
        CheckpointError, match=r"mine is (not a topology's checkpoint|the checkpoint of another Spark query)"
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
    assert tree(folder) == LEFT
    Checkpoint(folder).close()


def test_what_a_link_in_a_checkpoint_leads_to_stays(tmp_path: Path) -> None:
    folder, disk = tmp_path / "state", tmp_path / "disk"
    Checkpoint(folder).close()
    (folder / "state").rmdir()
    disk.mkdir()
    (disk / "0").write_text("of the state")
    (folder / "state").symlink_to(disk)
    reset_checkpoint(folder)
    assert tree(folder) == LEFT
    assert tree(disk) == ["0"]


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(CheckpointError, match="file as it is: it is not a directory"):
        reset_checkpoint(file)
    assert file.read_text() == "mine"


def test_a_damaged_manifest_can_be_reset(tmp_path: Path) -> None:
    Checkpoint(tmp_path).close()
    (tmp_path / "storm" / "manifest.json").write_text("{")
    reset_checkpoint(tmp_path)
    assert tree(tmp_path) == LEFT


def test_a_temporary_checkpoint_goes_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Checkpoint(None)
    assert store.path.is_dir()
    store.close()
    assert tree(tmp_path) == []


@pytest.mark.parametrize("before", [False, True])
def test_only_its_owner_can_read_what_spark_writes_also_in_a_folder_that_was_made_before(tmp_path, before):
    target = tmp_path / "checkpoint"
    if before:
        target.mkdir(mode=0o755)
        (target / "state").mkdir(mode=0o755)
    Checkpoint(target).close()
    modes = {path.name: path.stat().st_mode & 0o777 for path in target.iterdir()}
    assert modes == dict.fromkeys(("storm", "offsets", "commits", "state", "sources"), 0o700)


def test_a_reset_leaves_the_lock_for_those_who_have_it_open(tmp_path):
    target = tmp_path / "checkpoint"
    first = Checkpoint(target)
    (target / "storm" / "manifest.json").write_text("{}")
    first.close()
    OwnerFence(target, Owner("count-1-1700000000", 1, "a"))
    locks = {name: (target / "storm" / name).stat().st_ino for name in ("lock", "owner.lock")}
    reset_checkpoint(target)
    assert {path.name: path.stat().st_ino for path in (target / "storm").iterdir()} == locks
    assert [path.name for path in target.iterdir()] == ["storm"]
