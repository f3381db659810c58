"""What makes a micro-batch survive the loss of the machine, Spark's own files included.

Spark writes offsets, state and commits to a directory without forcing them to the disk. Two calls a micro-batch do, and
a third where bolts write outside:

- before anything is written outside, `syncfs`, too: an outside transaction never stands for a plan that is lost.
- before Spark commits it, `syncfs` of the checkpoint's file system: what was planned, what the batch left in state,
  outcomes and carried tuples. So a commit that is on the disk never stands for state that isn't.
- before spouts hear of its outcomes, `fsync` of the commit.

In between the machine may die with anything half-written: that is what `drop_torn` removes at the next start. Spark
has then forgotten only what no spout was told of. Hadoop keeps the checksums of a file in another file beside it. The
machine may die when only the first one is whole.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import zipfile
import zlib
from pathlib import Path

from storm_on_spark.launch.settings import Durability, PlaceSettings
from storm_on_spark.runtime.storage.durable import sync_file_system, sync_folder

log = logging.getLogger(__name__)

_VERSION = re.compile(r"(\d+)(?:_[0-9a-f-]+)?\.(?:zip|changelog|delta|snapshot)$")
"""A file of one version of a state store; the first micro-batch makes version 1."""


def durability_of(settings: PlaceSettings, master: str, on_cluster: bool) -> Durability:
    """Returns the level that a topology runs with.

    Over a network file system, other machines see only what was forced to the disk. So the default is `machine` where
    there are others.

    Args:
        settings: of the topology.
        master: Spark's.
        on_cluster: whether a Nimbus chooses on which machine the driver runs.

    Example:
        >>> unset = PlaceSettings.of({})
        >>> durability_of(unset, "local[2]", on_cluster=False), durability_of(unset, "local[2]", on_cluster=True)
        ('process', 'machine')
        >>> durability_of(unset, "spark://host:7077", on_cluster=False)
        'machine'
        >>> durability_of(PlaceSettings.of({"topology.durability": "process"}), "yarn", on_cluster=True)
        'process'
    """
    return settings.durability or ("machine" if on_cluster or not master.startswith("local") else "process")


class MachineDurability:
    """Forces what belongs to micro-batches to the disk.

    Args:
        checkpoint: the checkpoint's directory.

    Raises:
        OSError: the disk fails.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        # An earlier start may have ended before it did this, or ran at another level.
        sync_file_system(checkpoint)

    def force(self) -> None:
        """Forces everything to the disk; Spark's workers have closed their files by now."""
        sync_file_system(self._checkpoint)

    def committed(self, batch: int) -> None:
        """Forces Spark's commit of a micro-batch to the disk."""
        folder = self._checkpoint / "commits"
        file = os.open(folder / str(batch), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        sync_folder(folder)


def drop_torn(checkpoint: Path) -> list[str]:
    """Removes what a power loss left of files that Spark wrote last, and returns their names.

    Removed is only what nothing depends on: the commit of the last micro-batch, the offsets of one without a commit,
    and the state of the first micro-batch if there is no plan of it. Other unreadable files are damage; the code that
    needs them raises. Only for the owner, while no query runs.

    Raises:
        OSError: they can't be read or removed.
    """
    dropped: list[str] = []

    def drop(file: Path) -> None:
        log.warning("%s was not written whole when the machine died; nothing depends on it, and it is removed", file)
        file.unlink()
        _sums_of(file).unlink(missing_ok=True)
        dropped.append(str(file.relative_to(checkpoint)))

    commit = _last(checkpoint / "commits")
    offsets = _last(checkpoint / "offsets")
    if commit is not None and (offsets is None or int(offsets.name) <= int(commit.name)) and not _whole(commit, 2):
        drop(commit)
        commit = _last(checkpoint / "commits")
    # Two at most: the next micro-batch is planned when the last one is committed.
    while offsets is not None and (commit is None or int(offsets.name) > int(commit.name)) and not _whole(offsets, 3):
        drop(offsets)
        offsets = _last(checkpoint / "offsets")
    metadata = checkpoint / "metadata"
    if offsets is None and metadata.exists() and not _has_json(metadata.read_bytes()):
        drop(metadata)
    if offsets is None and commit is None and _is_of_the_first_batch(state := checkpoint / "state"):
        # Spark begins no query where there is any.
        log.warning("%s is of a micro-batch whose plan was not on the disk when the machine died; it is removed", state)
        shutil.rmtree(state)
        dropped.append(state.name)
    snapshots = _newest_snapshots(checkpoint)
    for snapshot in snapshots:
        if not _is_zip(snapshot):
            drop(snapshot)
    whole = [file for file, lines in ((commit, 2), (offsets, 3)) if file is not None and _whole(file, lines)]
    whole += [metadata] if metadata.exists() and _has_json(metadata.read_bytes()) else []
    whole += [snapshot for snapshot in snapshots if snapshot.exists()]
    for file in whole:
        if not _sums_fit(file):
            sums = _sums_of(file)
            log.warning("%s was not written whole when the machine died; its file is, and is read without it", sums)
            sums.unlink()
            dropped.append(str(sums.relative_to(checkpoint)))
    return dropped


def _is_of_the_first_batch(state: Path) -> bool:
    versions = (_VERSION.match(path.name) for path in state.rglob("*"))
    return state.is_dir() and any(state.iterdir()) and all(int(found[1]) <= 1 for found in versions if found)


def _newest_snapshots(checkpoint: Path) -> list[Path]:
    """Returns the newest snapshot of each state store that has more than one: it can be rebuilt from the previous one.

    A thread of Spark's writes snapshots beside the micro-batches, so only the next micro-batch forces one to the disk.
    """
    found: list[Path] = []
    for folder in {path.parent for path in (checkpoint / "state").rglob("*.zip")}:
        snapshots = sorted(folder.glob("*.zip"), key=lambda path: path.stat().st_mtime)
        found += snapshots[-1:] if len(snapshots) > 1 else []
    return found


def _sums_of(file: Path) -> Path:
    """Returns where Hadoop keeps the checksums of a file."""
    return file.with_name(f".{file.name}.crc")


def _sums_fit(file: Path) -> bool:
    """Whether a file's checksums are those of its content, or there are none: Hadoop asks for neither.

    The format is that of Hadoop's `ChecksumFileSystem`: `crc`, a zero, the bytes a checksum stands for, then one CRC-32
    for each block of that size.
    """
    try:
        sums = _sums_of(file).read_bytes()
    except FileNotFoundError:
        return True
    size = int.from_bytes(sums[4:8], "big")
    if sums[:4] != b"crc\0" or not size:
        return False
    content = file.read_bytes()
    parts = (content[start : start + size] for start in range(0, len(content), size))
    return sums[8:] == b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)


def _is_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return False


def _last(folder: Path) -> Path | None:
    """Returns the file of the last micro-batch in one of Spark's logs."""
    if not folder.is_dir():
        return None
    return max((path for path in folder.iterdir() if path.name.isdecimal()), key=lambda p: int(p.name), default=None)


def _whole(path: Path, lines: int) -> bool:
    """Whether a file of one of Spark's logs is as Spark writes it: a version, then lines of JSON."""
    data = path.read_bytes()
    version, *rest = data.split(b"\n")
    return version[:1] == b"v" and version[1:].isdigit() and len(rest) >= lines - 1 and all(map(_has_json, rest))


def _has_json(data: bytes) -> bool:
    if data == b"-":
        return True  # an offset of a source that had nothing yet
    try:
        json.loads(data)
    except ValueError:
        return False
    return True
