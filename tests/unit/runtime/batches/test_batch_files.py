"""Files of micro-batches: whole or not there, and damage is noticed."""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.storage import LocalStorage
from storm_on_spark.testing.storage.faulty import Fault, FaultyStorage


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 10**13), st.lists(st.binary(), max_size=4), max_size=4))
def test_what_is_written_is_read(files: dict[int, list[bytes]]) -> None:
    with TemporaryDirectory() as name:
        store = BatchFiles(Path(name) / "made")
        for batch, chunks in files.items():
            store.write(batch, chunks)
        assert store.batches() == sorted(batch for batch, chunks in files.items() if chunks)
        for batch in store.batches():
            assert BatchFiles(Path(name) / "made").read(batch) == files[batch]
            store.delete(batch)
            store.delete(batch)
        assert store.batches() == []


def test_another_attempt_replaces_the_file_or_removes_it(tmp_path: Path) -> None:
    store = BatchFiles(tmp_path)
    store.write(3, [b"first", b"try"])
    store.write(3, [b"second"])
    assert store.read(3) == [b"second"]
    store.write(3, [])
    assert list(tmp_path.iterdir()) == []


def test_any_damage_is_noticed(tmp_path: Path) -> None:
    store = BatchFiles(tmp_path)
    store.write(3, [b"one", b"", b"three"])
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError, match=str(path)):
            store.read(3)
    for position in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:position] + bytes([data[position] ^ (1 << bit)]) + data[position + 1 :])
            with pytest.raises(CheckpointError, match=str(path)):
                store.read(3)
    path.write_bytes(data + b"more")
    with pytest.raises(CheckpointError, match="it says that it has 3 chunks"):
        store.read(3)


def test_an_unknown_version_and_a_missing_file_are_said_so(tmp_path: Path) -> None:
    store = BatchFiles(tmp_path)
    store.write(3, [b"one"])
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"SBAT" + struct.pack("<H", 6) + path.read_bytes()[6:])
    with pytest.raises(CheckpointError, match="has format version 6; this release reads 1"):
        store.read(3)
    with pytest.raises(CheckpointError, match="is missing"):
        store.read(4)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_write_that_fails_leaves_one_or_the_other(tmp_path: Path, fault: Fault) -> None:
    faulty = FaultyStorage(LocalStorage(tmp_path), lambda call: fault if call.method == "put" and armed else None)
    armed = False
    store = BatchFiles(faulty)
    store.write(3, [b"first"])
    armed = True
    with pytest.raises(OSError, match="injected"):
        store.write(3, [b"second"])
    armed = False

    assert BatchFiles(tmp_path).read(3) == ([b"first"] if fault is Fault.REFUSED else [b"second"])
    store.write(3, [])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_not_asked_for(tmp_path: Path) -> None:
    """In a store that would take a round trip in every micro-batch."""
    faulty = FaultyStorage(LocalStorage(tmp_path), lambda _: None)
    store = BatchFiles(faulty)
    for batch in range(5):
        store.write(batch, [])
        store.delete(batch)
        assert store.batches() == []
    assert [call.method for call in faulty.calls] == ["list_folder"]
