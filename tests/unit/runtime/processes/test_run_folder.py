"""The folder of a start: it has an owner, and what killed drivers left goes with the next start."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storm_on_spark.runtime.processes import run_folder as folders
from storm_on_spark.runtime.processes.run_folder import make_private, new_start_id, owned_run_folder, run_folder

DRIVER = """
import sys, tempfile
from storm_on_spark.runtime.processes.run_folder import owned_run_folder
tempfile.tempdir = sys.argv[1]
with owned_run_folder(sys.argv[2]) as folder:
    (folder / "live").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def driver(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    command = [sys.executable, "-c", DRIVER, str(temporary), new_start_id()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_what_a_killed_driver_left_goes_with_the_next_start(temporary: Path) -> None:
    with driver(temporary) as (process, folder):
        with owned_run_folder(new_start_id()) as own:
            assert sorted(temporary.iterdir()) == sorted([folder, own])
        assert list(temporary.iterdir()) == [folder], "its driver lives"
        process.kill()
        process.wait()
        assert folder.exists()
        with owned_run_folder(new_start_id()) as own:
            assert list(temporary.iterdir()) == [own]
    assert list(temporary.iterdir()) == []


def test_a_driver_that_ends_leaves_nothing(temporary: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with owned_run_folder(new_start_id()) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "live").touch()
    assert list(temporary.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_folders_without_a_lock_and_those_of_others_stay(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "owner.lock").touch()
    on_an_executor, named, forged, others = (temporary / f"storm-run-{name}" for name in ("4f", "test-4f", "5f", "6f"))
    for folder in (on_an_executor, named, forged, others):
        make_private(folder)
    (named / "owner.lock").touch()
    (temporary / "storm-run-7f").symlink_to(elsewhere)
    (forged / "owner.lock").symlink_to(elsewhere / "owner.lock")
    before = sorted(temporary.iterdir())
    with owned_run_folder(new_start_id()):
        pass
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / "owner.lock").exists()
    (others / "owner.lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    folders.remove_if_abandoned(others)
    assert others.exists(), "another user's"


def test_a_start_whose_folder_is_taken_for_abandoned_makes_it_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_id, flock = new_start_id(), fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        folders.remove_if_abandoned(run_folder(start_id))  # by another driver that starts just now
        assert not run_folder(start_id).exists()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with owned_run_folder(start_id) as folder:
        folders.remove_if_abandoned(folder)
        assert [path.name for path in folder.iterdir()] == ["owner.lock"]
