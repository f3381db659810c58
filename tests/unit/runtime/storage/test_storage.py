"""The stores that need no server keep the contract; the local one is whole and exclusive."""

from __future__ import annotations

import errno
import os
import pickle
import threading
import time
from pathlib import Path

import pytest

from storm_on_spark.runtime.storage import LocalPlace, LocalStorage, Storage
from storm_on_spark.testing.storage.contract import StorageContract
from storm_on_spark.testing.storage.faulty import Call, Fault, FaultyStorage


class TestLocal(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalPlace(str(tmp_path / "store")).open()


class TestLocalSynced(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalPlace(str(tmp_path / "store"), synced=True).open()


class TestLocalWithoutHardLinks(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
        def refuse(*_: object) -> None:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "link", refuse)
        return LocalStorage(tmp_path / "store")


class TestSlow(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return FaultyStorage(LocalStorage(tmp_path / "store"), lambda _: time.sleep(0.001))


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "store")


def test_a_name_that_exists_with_other_bytes_is_refused(local):
    local.create("f/a", b"mine")

    with pytest.raises(FileExistsError):
        local.create("f/a", b"yours")

    assert local.read("f/a") == b"mine"
    assert [path.name for path in (local.local_path() / "f").iterdir()] == ["a"]


def test_of_many_who_create_one_name_one_wins(local):
    won: list[bytes] = []

    def attempt(content: bytes) -> None:
        try:
            local.create("owner", content)
            won.append(content)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=attempt, args=(bytes([number]),)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert won == [local.read("owner")]


def test_a_write_that_fails_leaves_nothing_behind(local, monkeypatch):
    local.put("f/a", b"before")

    def full(_file: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    for method in (local.create, local.put):
        with pytest.raises(OSError, match="No space left"):
            method("f/a", b"after")
    monkeypatch.undo()

    assert local.read("f/a") == b"before"
    assert [path.name for path in (local.local_path() / "f").iterdir()] == ["a"]


def test_what_is_synced_was_forced_to_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    forced: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    LocalStorage(tmp_path, synced=True).put("f/a", b"1")

    content, folder = forced
    assert content.startswith(str(tmp_path / "f" / "."))
    assert folder == str(tmp_path / "f")


def test_files_are_for_their_owner_only(local):
    local.create("f/a", b"1")

    assert (local.local_path() / "f" / "a").stat().st_mode & 0o777 == 0o600
    assert (local.local_path() / "f").stat().st_mode & 0o777 == 0o700


def test_an_answer_that_was_lost_is_asked_for_again_without_harm(local):
    lost = {0: Fault.ANSWER_LOST, 2: Fault.REFUSED}
    faulty = FaultyStorage(local, lambda call: lost.get(call.number))

    for _ in range(2):
        with pytest.raises(OSError, match="injected"):
            faulty.create("a", b"1")
        faulty.create("a", b"1")

    assert local.read("a") == b"1"
    assert faulty.injected == [Call(0, "create", "a"), Call(2, "create", "a")]


def test_a_place_is_opened_in_another_process_by_its_value(tmp_path):
    place = pickle.loads(pickle.dumps(LocalPlace(str(tmp_path))))
    place.open().create("a", b"1")

    assert (tmp_path / "a").read_bytes() == b"1"
