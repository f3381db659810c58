"""A lock is held by whoever has locked the file that has the name now."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from storm_on_spark.runtime.processes.lock_file import is_file, locked


def test_a_second_one_gets_nothing_until_the_first_is_closed(tmp_path: Path) -> None:
    first = locked(tmp_path / "lock")
    with pytest.raises(BlockingIOError):
        locked(tmp_path / "lock")
    os.close(first)
    os.close(locked(tmp_path / "lock"))


def test_a_file_that_was_removed_between_opening_and_locking_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, others, flock = tmp_path / "lock", [], fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        others.append(locked(path))  # of another process, which made a new file
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(BlockingIOError):
        locked(path)
    assert is_file(others[0], path)
    os.close(others[0])


def test_a_file_that_was_removed_and_not_made_again_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "lock", fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    descriptor = locked(path)
    assert is_file(descriptor, path)
    os.close(descriptor)


def test_one_that_waits_waits_for_the_file_that_has_the_name_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, ended = tmp_path / "lock", fcntl.flock, threading.Event()

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()
        other = locked(path)  # of another process, which made a new file

        def end() -> None:
            ended.set()
            os.close(other)

        threading.Timer(0.2, end).start()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    descriptor = locked(path, wait=True)
    assert ended.is_set()
    assert is_file(descriptor, path)
    os.close(descriptor)
