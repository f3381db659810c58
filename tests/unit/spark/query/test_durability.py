"""What a power loss leaves half-written: removed where nothing depends on it, and damage everywhere else."""

from __future__ import annotations

import errno
import fcntl
import os
import zipfile
import zlib
from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.launch.settings import PlaceSettings
from storm_on_spark.runtime.batches.files import BatchFiles
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.spouts.log import SpoutLog
from storm_on_spark.runtime.storage import durable
from storm_on_spark.spark.checkpoint.directory import Checkpoint
from storm_on_spark.spark.checkpoint.owner import Owner, OwnerFence
from storm_on_spark.spark.query.durability import MachineDurability, drop_torn, durability_of

COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
OFFSETS = b'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"version":2,"logs":{"3":120},"clock":5,"carried":-1,"epochs":{}}'
TORN = (b"", b"v", b"v1", bytes(40))


def sums(content: bytes) -> bytes:
    """Checksums as Hadoop writes them beside a file."""
    parts = (content[start : start + 512] for start in range(0, len(content), 512))
    return b"crc\0" + (512).to_bytes(4, "big") + b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)


def checkpoint(folder: Path, *, planned: int, committed: int) -> Path:
    """Makes Spark's logs as they are when this many micro-batches were planned and committed."""
    for name, count, content in (("offsets", planned, OFFSETS), ("commits", committed, COMMIT)):
        (folder / name).mkdir(parents=True)
        for batch in range(count):
            (folder / name / str(batch)).write_bytes(content)
            (folder / name / f".{batch}.crc").write_bytes(sums(content))
    (folder / "metadata").write_text('{"id":"x"}')
    return folder


@pytest.mark.parametrize("rest", [*TORN, OFFSETS[:-1], OFFSETS[:60], OFFSETS[:20] + bytes(len(OFFSETS) - 20)])
def test_the_offsets_of_a_micro_batch_that_has_no_commit_may_be_torn(tmp_path: Path, rest: bytes) -> None:
    checkpoint(tmp_path, planned=3, committed=2)
    (tmp_path / "offsets" / "2").write_bytes(rest)
    assert drop_torn(tmp_path) == ["offsets/2"]
    assert sorted(os.listdir(tmp_path / "offsets")) == [".0.crc", ".1.crc", "0", "1"]
    assert drop_torn(tmp_path) == []


def state_of(folder: Path, *names: str) -> Path:
    for name in ("_metadata/v2/0", "0/_stateSchema/default/0", *(f"0/0/{name}" for name in names)):
        path = folder / "state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return folder / "state"


def test_the_state_of_a_first_micro_batch_whose_plan_is_lost_is_removed(tmp_path: Path) -> None:
    checkpoint(tmp_path, planned=1, committed=0)
    state = state_of(tmp_path, "1.changelog", ".1.zip.crc", "1_1f3c-07.zip", "SSTs/000008-05.sst")
    assert drop_torn(tmp_path) == []
    assert state.exists(), "it is executed again"
    (tmp_path / "offsets" / "0").write_bytes(b"")
    assert drop_torn(tmp_path) == ["offsets/0", "state"]
    assert not state.exists()
    assert drop_torn(tmp_path) == []


@pytest.mark.parametrize("later", ["2.changelog", "2_1f3c-07.changelog", "7.zip"])
def test_the_state_of_later_micro_batches_stays_if_all_plans_are_missing(tmp_path: Path, later: str) -> None:
    checkpoint(tmp_path, planned=0, committed=0)
    state = state_of(tmp_path, "1.changelog", later)
    assert drop_torn(tmp_path) == []
    assert state.exists()


@pytest.mark.parametrize("rest", [*TORN, COMMIT[:-1], b'v1\n{"' + bytes(9)])
def test_the_commit_of_the_last_micro_batch_may_be_torn(tmp_path: Path, rest: bytes) -> None:
    checkpoint(tmp_path, planned=3, committed=3)
    (tmp_path / "commits" / "2").write_bytes(rest)
    assert drop_torn(tmp_path) == ["commits/2"]
    assert not (tmp_path / "commits" / ".2.crc").exists()


@pytest.mark.parametrize("rest", [b"", b"crc\0", sums(b"")[:8], sums(OFFSETS)[:9], bytes(12)])
@pytest.mark.parametrize("name", ["commits/2", "offsets/2", "metadata"])
def test_the_checksums_of_a_file_that_is_whole_may_be_torn(tmp_path: Path, name: str, rest: bytes) -> None:
    file = checkpoint(tmp_path, planned=3, committed=3) / name
    torn = file.with_name(f".{file.name}.crc")
    torn.write_bytes(rest)
    assert drop_torn(tmp_path) == [str(torn.relative_to(tmp_path))]
    assert file.exists()
    assert not torn.exists()


def test_checksums_are_hadoops() -> None:
    """Those of a commit file that Spark wrote."""
    assert sums(COMMIT) == bytes.fromhex("6372630000000200f32abfdd")


def test_what_later_files_stand_on_is_left_alone_and_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, planned=3, committed=3)
    (tmp_path / "offsets" / "2").write_bytes(b"")
    (tmp_path / "storm").mkdir()
    (tmp_path / "storm" / "manifest.json").write_text("{}")
    assert drop_torn(tmp_path) == []
    store = Checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"offset log .*offsets/2 can't be read"):
        store.planned()
    store.close()


def test_a_checkpoint_in_which_nothing_was_planned_may_lack_spark_s_metadata(tmp_path: Path) -> None:
    checkpoint(tmp_path, planned=1, committed=0)
    (tmp_path / "offsets" / "0").write_bytes(b"")
    (tmp_path / "metadata").write_bytes(b"")
    assert drop_torn(tmp_path) == ["offsets/0", "metadata"]


def test_the_newest_snapshot_of_a_state_store_may_be_torn(tmp_path: Path) -> None:
    checkpoint(tmp_path, planned=3, committed=3)
    store = tmp_path / "state" / "0" / "0"
    store.mkdir(parents=True)
    for number, version in enumerate((10, 20)):
        with zipfile.ZipFile(store / f"{version}.zip", "w") as archive:
            archive.writestr("metadata", "x" * 1000)
        os.utime(store / f"{version}.zip", (number, number))
    assert drop_torn(tmp_path) == []
    data = (store / "20.zip").read_bytes()
    (store / "20.zip").write_bytes(data[:50] + bytes(len(data) - 50))
    os.utime(store / "20.zip", (9, 9))
    assert drop_torn(tmp_path) == ["state/0/0/20.zip"]
    assert (store / "10.zip").exists()


def test_a_whole_checkpoint_stays_as_it_is(tmp_path: Path) -> None:
    checkpoint(tmp_path, planned=3, committed=2)
    before = sorted(tmp_path.rglob("*"))
    assert drop_torn(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before
    store = Checkpoint(tmp_path / "new")
    assert (store.planned(), store.committed()) == (Offset(), -1)
    store.close()


def test_a_commit_and_its_folder_are_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(tmp_path, planned=3, committed=3)
    synced: list[str] = []
    fsync = os.fsync

    def recorded(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(durable, "syncfs", lambda file: synced.append(f"all of {os.readlink(f'/proc/self/fd/{file}')}"))
    monkeypatch.setattr(os, "fsync", recorded)
    durability = MachineDurability(tmp_path)
    durability.force()
    durability.committed(2)
    assert synced == [
        f"all of {tmp_path}",
        f"all of {tmp_path}",
        str(tmp_path / "commits" / "2"),
        str(tmp_path / "commits"),
    ]


def test_a_file_system_that_does_not_take_it_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "syncfs", lambda file: -1)
    with pytest.raises(OSError, match=str(tmp_path)):
        MachineDurability(tmp_path)


# --- the folder ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_its_owner_s_business(tmp_path: Path) -> None:
    store = Checkpoint(tmp_path / "shared" / "checkpoint")
    BatchFiles(store.folder / "outcomes").write(1, [b"x"])
    log = SpoutLog(store.folder / "spouts" / "1")
    log.append([], tuples=0, messages=0, first=1, clock=0, snapshot=b"s")
    modes = {path: path.stat().st_mode & 0o777 for path in (store.path, *store.path.rglob("*"))}
    log.close()
    store.close()
    assert len(modes) > 6
    assert {modes[path] for path in modes if path.is_dir()} == {0o700}
    assert {modes[path] for path in modes if path.is_file()} == {0o600}


def test_a_checkpoint_is_in_use_only_if_its_lock_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Checkpoint(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="is in use by a running topology"):
        Checkpoint(tmp_path / "checkpoint")
    assert not caplog.messages

    def no_locks(file: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    Checkpoint(tmp_path / "checkpoint").close()
    assert "can't be locked (Operation not supported)" in caplog.text
    fence = OwnerFence(tmp_path / "checkpoint", Owner("topology", 1, "a"))
    fence.await_former(0, 0)
    store.close()


@pytest.mark.parametrize(
    ("master", "on_cluster", "level"),
    [
        ("local[2]", False, "process"),
        ("local-cluster[2,1,1024]", False, "process"),
        ("local[2]", True, "machine"),
        # Its workers read spout logs on other machines, also those of spouts beside the driver.
        ("spark://host:7077", False, "machine"),
        ("yarn", False, "machine"),
    ],
)
def test_where_there_are_other_machines_all_is_forced_to_the_disk_unless_told_otherwise(
    master: str, on_cluster: bool, level: str
) -> None:
    assert durability_of(PlaceSettings.of({}), master, on_cluster) == level
    for given in ("process", "machine"):
        assert durability_of(PlaceSettings.of({"topology.durability": given}), master, on_cluster) == given
