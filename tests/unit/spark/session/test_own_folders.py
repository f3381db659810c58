"""Folders in a place where others write too are used only if they are ours alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from storm_on_spark.spark.session.folders.dirs import own_dir
from storm_on_spark.spark.session.logs import new_log_file


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder, where the folder for logs can't be made."""
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def guessed(shared: Path) -> Path:
    return shared / f"storm-on-spark-logs-{os.getuid()}"


def test_it_is_made_for_its_owner_only(shared: Path) -> None:
    log = new_log_file()
    assert log.parent == guessed(shared)
    assert mode(log.parent) == 0o700
    assert new_log_file().parent == log.parent


def test_one_of_ours_that_lets_others_in_is_closed(shared: Path) -> None:
    guessed(shared).mkdir()
    guessed(shared).chmod(0o777)
    assert new_log_file().parent == guessed(shared)
    assert mode(guessed(shared)) == 0o700


def test_a_link_that_somebody_laid_is_not_followed(shared: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "20200101T000000-1.log").touch()
    before = mode(victim)
    guessed(shared).symlink_to(victim)
    log = new_log_file()
    assert log.parent.parent == shared
    assert log.parent != guessed(shared)
    assert mode(log.parent) == 0o700
    assert [path.name for path in victim.iterdir()] == ["20200101T000000-1.log"]
    assert mode(victim) == before


def test_somebody_elses_folder_is_left_alone(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guessed(shared).mkdir(mode=0o777)
    before = mode(guessed(shared))
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    assert not own_dir(guessed(shared))
    log = new_log_file()
    assert log.parent != guessed(shared)
    assert mode(guessed(shared)) == before


def test_a_file_in_its_place(shared: Path) -> None:
    guessed(shared).touch()
    assert new_log_file().parent != guessed(shared)
