"""Temporary folders: what a killed owner leaves goes at the next start, and nothing that has an owner does."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storm_on_spark.runtime.processes.lock_file import locked
from storm_on_spark.spark.session.folders import dirs
from storm_on_spark.spark.session.folders.dirs import session_scratch
from storm_on_spark.spark.session.folders.owned import make_owned, remove_abandoned, remove_owned, temporary_checkpoint

OWNER = """
import sys, tempfile
from pathlib import Path
from storm_on_spark.spark.session.folders.owned import make_owned
tempfile.tempdir = sys.argv[1]
folder = make_owned()
(folder / "checkpoint").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(dirs, "SHORT_TEMPORARY", str(folder))
    return folder


@contextmanager
def owner(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    command = [sys.executable, "-c", OWNER, str(temporary)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_removed_by_the_next_that_starts(temporary: Path) -> None:
    with owner(temporary) as (process, folder):
        with temporary_checkpoint():
            assert (folder / "checkpoint").is_dir(), "its owner lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert folder.is_dir()
        with temporary_checkpoint() as checkpoint:
            assert not folder.exists()
            checkpoint.mkdir()
    assert list(temporary.iterdir()) == []


def test_a_session_removes_it_as_well(temporary: Path) -> None:
    with owner(temporary) as (process, folder):
        process.kill()
        process.wait()
        scratch = session_scratch()
        assert not folder.exists()
    remove_owned(scratch)


def test_a_process_id_that_is_not_there_says_nothing(temporary: Path) -> None:
    """Another container's process, which shares the folder and not the process ids."""
    with owner(temporary) as (_, folder):
        other = folder.with_name("storm-on-spark-4194305-abcdefgh")
        folder.rename(other)
        remove_abandoned([temporary])
        assert (other / "checkpoint").is_dir()


def test_a_process_id_that_is_there_keeps_nothing(temporary: Path) -> None:
    """A process of ours that got the id of one that was killed."""
    with owner(temporary) as (process, folder):
        process.kill()
        process.wait()
        reused = folder.rename(folder.with_name(f"storm-on-spark-{os.getpid()}-abcdefgh"))
        remove_abandoned([temporary])
        assert not reused.exists()


def test_what_a_jvm_is_about_to_start_in_stays_until_that_is_gone(temporary: Path) -> None:
    with owner(temporary) as (process, folder):
        process.kill()
        process.wait()
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, f"-Dlog={folder}/log4j2.xml"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        remove_abandoned([temporary])
        assert folder.exists()
    remove_abandoned([temporary])
    assert not folder.exists()


def test_folders_of_others_and_other_folders_stay(temporary: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "photos"
    for folder in (elsewhere, temporary / "storm-on-spark-logs-0", temporary / "storm-on-spark-1-new"):
        folder.mkdir()
    (elsewhere / "owner.lock").touch()
    (temporary / "storm-on-spark-1-link").symlink_to(elsewhere)
    with owner(temporary) as (process, forged):
        process.kill()
        process.wait()
    (forged / "owner.lock").unlink()
    (forged / "owner.lock").symlink_to(elsewhere / "owner.lock")
    before = sorted(temporary.iterdir())
    remove_abandoned([temporary])
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / "owner.lock").exists()


def test_a_folder_that_a_dying_process_made_again_goes_when_it_is_old(temporary: Path) -> None:
    ruin = temporary / "storm-on-spark-1-ruin"
    (ruin / "checkpoint").mkdir(parents=True)
    remove_abandoned([temporary])
    assert ruin.exists(), "it might be new, and about to be locked"
    old = time.time() - 3600
    os.utime(ruin, (old, old))
    remove_abandoned([temporary])
    assert not ruin.exists()


def test_an_owner_that_gives_it_up_leaves_nothing(temporary: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    folder = make_owned()
    (folder / "file").touch()
    remove_owned(folder)
    remove_owned(folder)
    assert not folder.exists()
    assert len(os.listdir("/proc/self/fd")) == before


def test_sockets_are_swept_up_where_the_temporary_folder_is_too_long_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    for folder in (short, long):
        folder.mkdir()
    monkeypatch.setattr(dirs, "SHORT_TEMPORARY", str(short))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with owner(short) as (process, old):
        process.kill()
        process.wait()
    remove_owned(session_scratch())
    assert not old.exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_not_handed_out(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        remove_abandoned([temporary])  # of a process that starts just now
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    folder = make_owned()
    assert list(temporary.iterdir()) == [folder]
    remove_abandoned([temporary])
    assert folder.is_dir(), "its owner lives"
    remove_owned(folder)


def test_a_folder_that_was_made_again_before_the_lock_was_got_stays(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock
    with owner(temporary) as (process, folder):
        process.kill()
        process.wait()
    new: list[int] = []

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        remove_abandoned([temporary])
        folder.mkdir()
        new.append(locked(folder / "owner.lock"))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    remove_abandoned([temporary])
    assert (folder / "owner.lock").is_file()
    os.close(new[0])
