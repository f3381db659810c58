"""The checkpoint directory of a topology.

Spark's own checkpoint (`metadata`, `offsets`, `commits`, `state`, `sources`) is the directory itself, so Spark's tools
read it as any other. What Storm on Spark adds is in its subfolder `storm`:

    storm/manifest.json   which topology this is, and what of it may not change
    storm/lock            held while the topology runs; in a directory only
    storm/owner.json      which driver of a cluster may run on it, in a directory; see `owner`
    storm/owners/         its present and past owners, in a store; see `store_fence`
    storm/readers.json    who reads the rows of native spouts, Spark or their tasks; see `readers`
    storm/spouts/TASK/    the spout logs
    storm/outcomes/       acks and fails that a spout may have to be told again
    storm/carried/        tuples of back edges on their way to the next micro-batch
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.processes.lock_file import locked, open_lock
from storm_on_spark.runtime.storage import Folder, LocalPlace, PlaceWithin, Storage, StoragePlace
from storm_on_spark.runtime.storage.durable import make_folder
from storm_on_spark.spark.checkpoint.location import Location, local_directory, location_of, place_of
from storm_on_spark.spark.session.folders.owned import make_owned, remove_owned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.checkpoint.store_fence import StoreFence

log = logging.getLogger(__name__)

VERSION = 1
_FOLDER = "storm"
_SPARKS_FOLDERS = ("offsets", "commits", "state", "sources")
_MARKS = ("manifest.json", "lock", "owner.json")
"""The file by which a checkpoint shows that a topology has opened it, also if it never ran."""
_MANIFEST = f"{_FOLDER}/manifest.json"
_MANIFEST_BYTES = 16 << 20


@dataclass(frozen=True)
class Manifest:
    """The record of its topology in a checkpoint."""

    name: str
    storm_id: str
    partitions: int
    fingerprint: dict[str, Any]


class Checkpoint:
    """An open checkpoint in a directory; only one running topology can have it.

    Args:
        path: a directory, or a `file:` URI of one; it must be reachable under the same path from all workers. A
            temporary one for None, removed by `close`.

    Raises:
        CheckpointError: it can't be used, or another topology runs on it.
    """

    fence: StoreFence | None = None
    """Its owner, where there is no lock."""

    @property
    def owner(self) -> int:
        """The number of its owner's claim; 0 where there is a lock."""
        return 0 if self.fence is None else self.fence.number

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._temporary = path is None
        self.path = local_directory(path) if path is not None else make_owned() / "checkpoint"
        self._open(Location(f"file:{self.path}", self.path), LocalPlace(str(self.path), synced=True))
        self.folder = self.path / _FOLDER
        # Before anything is written into it.
        _refuse_foreign(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            make_folder(self.folder, sync=True)
            # Spark makes its folders with the umask, and they have the state of bolts. Folders that exist may have been
            # made by hand.
            for name in (_FOLDER, *_SPARKS_FOLDERS):
                make_folder(self.path / name, sync=False)
                (self.path / name).chmod(0o700)
            self._lock = self._locked()
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.path} can't be written: {error}") from error

    def _locked(self) -> int:
        path = self.folder / "lock"
        try:
            return locked(path)
        except BlockingIOError:
            raise CheckpointError(
                f"checkpoint {self.path} is in use by a running topology; stop that, or choose another directory"
            ) from None
        except OSError as error:
            descriptor = open_lock(path)
            log.warning(
                "checkpoint %s can't be locked (%s): its file system has no locks, so nothing keeps a second topology "
                "from starting on it; make sure that only one runs",
                self.path,
                error.strerror or error,
            )
            return descriptor

    def _open(self, location: Location, place: StoragePlace) -> None:
        self.location = location
        self.root = place.open()
        """All of the checkpoint, Spark's part too."""
        self.place = PlaceWithin(place, _FOLDER)
        """The topology's own folder."""
        self.own: Folder = self.place.open() if location.path is None else location.path / _FOLDER
        """The same, open."""

    def manifest(self) -> Manifest | None:
        """Returns what an earlier start wrote; None in a new checkpoint.

        Raises:
            CheckpointError: it can't be read or is of another version.
        """
        return manifest_in(self.root)

    def claim(self, name: str, plan: PlacedPlan) -> Manifest:
        """Writes the manifest of a new checkpoint, or checks that the topology may continue from an old one.

        Args:
            name: the topology's name.
            plan: the plan that is to start.

        Raises:
            CheckpointError: the checkpoint belongs to another topology, or one that changed too much.
        """
        now = fingerprint(plan)
        old = self.manifest()
        if old is not None:
            if old.name != name:
                raise CheckpointError(
                    f"checkpoint {self.location} belongs to topology {old.name!r}, not to {name!r}; "
                    "choose another directory, or --reset-checkpoint to start afresh"
                )
            problems = compare(old.fingerprint, now)
            if problems:
                raise CheckpointError(
                    f"topology {name!r} changed in a way that its checkpoint {self.location} does not allow: "
                    + "; ".join(problems)
                    + ". Undo the change, choose another directory, or --reset-checkpoint to start afresh"
                )
            # What was added since counts from now on.
            return self._write(dataclasses.replace(old, fingerprint=now))
        return self._write(Manifest(name, f"{name}-{uuid.uuid4().hex[:12]}", plan.partitions, now))

    def _write(self, manifest: Manifest) -> Manifest:
        data = {"version": VERSION, **manifest.__dict__}
        try:
            self.root.put(_MANIFEST, json.dumps(data, indent=1, sort_keys=True).encode())
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.location} can't be written: {error.strerror or error}") from error
        return manifest

    def planned(self) -> Offset:
        """Returns the last offset that Spark planned a micro-batch up to.

        Raises:
            CheckpointError: Spark's offset log can't be read.
        """
        return planned_in(self.root)

    def committed(self) -> int:
        """Returns the last micro-batch that Spark has committed; -1 if there is none."""
        last = last_batch(self.root, "commits")
        return -1 if last is None else last

    def remove_half_written(self) -> None:
        """Removes files that were begun and not finished, because a process was killed or the disk was full.

        Spark writes under a hidden name and renames, as we do; a file left under such a name is never read.
        Only for the owner of the checkpoint, while no query runs on it.
        """
        for name in (_FOLDER, *_SPARKS_FOLDERS):
            for folder, _, files in os.walk(self.path / name):
                for file in files:
                    if file.startswith(".") and file.removesuffix(".crc").endswith(".tmp"):
                        Path(folder, file).unlink(missing_ok=True)

    def close(self) -> None:
        """Releases the checkpoint, and removes it if it is temporary."""
        os.close(self._lock)
        if self._temporary:
            remove_owned(self.path.parent)


def manifest_in(root: Storage) -> Manifest | None:
    """Returns what the first start of a topology wrote to a checkpoint; None in a new one.

    Raises:
        CheckpointError: it can't be read, is of another version, or is not a topology's.
    """
    where = f"{root.url}/{_MANIFEST}"
    try:
        content = root.read(_MANIFEST, 0, _MANIFEST_BYTES)
    except FileNotFoundError:
        if any(found.name == "metadata" for found in root.list_folder()):
            raise CheckpointError(f"{root.url} is the checkpoint of another Spark query, not of a topology") from None
        return None
    except OSError as error:
        raise CheckpointError(f"{where} can't be read: {error.strerror or error}") from error
    try:
        data = json.loads(content)
        version = data["version"]
        if version != VERSION:
            raise CheckpointError(other_format(str(where), version, VERSION))
        return Manifest(data["name"], data["storm_id"], int(data["partitions"]), data["fingerprint"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{where} can't be read: {type(error).__name__}: {error}") from error


def planned_in(root: Storage) -> Offset:
    """Returns the last offset that Spark planned a micro-batch up to.

    Raises:
        CheckpointError: Spark's offset log can't be read.
    """
    number = last_batch(root, "offsets")
    if number is None:
        return Offset()
    name = f"offsets/{number}"
    try:
        lines = lines_of(root.read(name).decode())
        # Spark's format: version, metadata of the batch, then one line for each source.
        # Ours is the first, "-" if it had nothing yet.
        return Offset() if lines[2] == "-" else Offset.from_json(json.loads(lines[2]))
    except (IndexError, ValueError, KeyError, OSError) as error:
        raise CheckpointError(f"Spark's offset log {root.url}/{name} can't be read: {error}") from error


def last_batch(root: Storage, log: str) -> int | None:
    """Returns the last micro-batch in one of Spark's logs, `offsets` or `commits`; None if there is none."""
    names = (found.name.rpartition("/")[2] for found in root.list_folder(log))
    return max((int(name) for name in names if name.isdecimal()), default=None)


def read_manifest(path: str | os.PathLike[str], spark: SparkSession | None = None) -> Manifest | None:
    """Returns what the first start of a topology wrote to a checkpoint; None in a new one.

    Args:
        path: the checkpoint.
        spark: a session, which knows how a store is reached; not needed for a directory.

    Raises:
        CheckpointError: it can't be read, is of another version, or is not a topology's.
    """
    return manifest_in(place_of(location_of(path), spark).open())


@dataclass(frozen=True)
class Found:
    """A summary of a checkpoint, which is read without opening it."""

    identity: str = ""
    """`storm_id` of its manifest; empty where there is none."""
    name: str = ""
    """The name of its topology."""
    committed: bool = False
    """Whether a micro-batch was committed."""


def found_in(path: str | os.PathLike[str], spark: SparkSession | None = None) -> Found:
    """Returns the contents of a checkpoint without writing to it.

    Args:
        path: the checkpoint.
        spark: a session, which knows how a store is reached; not needed for a directory.

    Raises:
        CheckpointError: its manifest can't be read, or it is not a topology's.
    """
    root = place_of(location_of(path), spark).open()
    manifest = manifest_in(root)
    if manifest is None:
        return Found()
    return Found(manifest.storm_id, manifest.name, last_batch(root, "commits") is not None)


_OWNERS_FILES = frozenset({"lock", "owner.json", "owner.lock"})


def clear_checkpoint(path: str | os.PathLike[str], name: str, spark: SparkSession | None = None) -> None:
    """Removes the state of a topology from a checkpoint that the caller owns; its owner and all other files stay.

    Args:
        path: the checkpoint.
        name: of the topology.
        spark: a session, which knows how a store is reached; not needed for a directory.

    Raises:
        CheckpointError: it is another topology's, or no topology's.
    """
    location = location_of(path)
    if location.path is None:
        _clear_store(location, name, place_of(location, spark).open())
        return
    target = location.path
    try:
        manifest = read_manifest(target)
    except CheckpointError:
        if not (target / _FOLDER / "manifest.json").exists():
            raise
        manifest = None  # a damaged manifest protects nothing
    if manifest is not None and manifest.name != name:
        raise CheckpointError(f"checkpoint {target} belongs to topology {manifest.name!r}, not to {name!r}")
    strange = {*_strange_entries(target), _FOLDER}
    ours = [entry for entry in target.iterdir() if entry.name not in strange]
    for entry in [*ours, *(target / _FOLDER).iterdir()]:
        if entry.name not in _OWNERS_FILES:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _clear_store(location: Location, name: str, root: Storage) -> None:
    manifest = manifest_in(root)
    if manifest is not None and manifest.name != name:
        raise CheckpointError(f"checkpoint {location} belongs to topology {manifest.name!r}, not to {name!r}")
    empty_store(root)


def empty_store(root: Storage) -> None:
    """Removes the files of a topology and of Spark from a store; its owner and all other objects stay."""
    for found in root.list_folder(deep=True):
        first, _, rest = found.name.partition("/")
        # The manifest at last: as long as it is there, the rest is known to be a topology's.
        kept = first == _FOLDER and rest.startswith(("owners/", "manifest"))
        if is_part(found.name) and not kept:
            root.delete(found.name)
    root.delete(_MANIFEST)


def is_part(name: str) -> bool:
    """Whether Spark or a topology writes files of this name, from the root of a checkpoint.

    Example:
        >>> is_part("offsets/7"), is_part("storm/manifest.json"), is_part("photos/me.png")
        (True, True, False)
    """
    return name.partition("/")[0] in {"metadata", _FOLDER, *_SPARKS_FOLDERS}


def reset_checkpoint(path: str | os.PathLike[str]) -> None:
    """Removes a topology's checkpoint, so that it starts afresh.

    Raises:
        CheckpointError: it is in use, or the directory is something else.
    """
    target = local_directory(path)
    if not target.exists():
        return
    if not target.is_dir():
        raise CheckpointError(f"--reset-checkpoint leaves {target} as it is: it is not a directory; name another one")
    # Before it is opened, which would put our folder into it.
    strange = _strange_entries(target)
    if strange:
        raise CheckpointError(
            f"--reset-checkpoint leaves {target} as it is: {strange[0]!r} in it is not part of a checkpoint; name "
            "another directory, or remove it by hand"
        )
    _refuse_foreign(target)
    if any(target.iterdir()) and not any((target / _FOLDER / name).exists() for name in _MARKS):
        raise CheckpointError(
            f"--reset-checkpoint leaves {target} as it is: it has no {_FOLDER}/manifest.json, so it is not a "
            "topology's checkpoint; name another directory, or remove it by hand"
        )
    checkpoint = Checkpoint(target)
    try:
        # Lock files stay: a process that has one open would otherwise lock another file than the next process.
        for entry in [*target.iterdir(), *checkpoint.folder.iterdir()]:
            if entry not in (checkpoint.folder, *(checkpoint.folder / name for name in ("lock", "owner.lock"))):
                # A folder may be a link to another disk: what is there is not ours to remove.
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    finally:
        checkpoint.close()


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuses a directory that can't be a checkpoint, before Spark is started. A store is checked later.

    Raises:
        CheckpointError: the directory is something else.
    """
    if urlsplit(os.fspath(path)).scheme in ("", "file"):
        _refuse_foreign(local_directory(path))


def _refuse_foreign(path: Path) -> None:
    """Does nothing for a checkpoint, and for a directory that is new or empty.

    Raises:
        CheckpointError: the directory is something else.
    """
    if (path / _FOLDER / "manifest.json").exists():
        return
    strange = _strange_entries(path)
    if strange:
        raise CheckpointError(
            f"{path} is not a topology's checkpoint: it holds {strange[0]!r}, and no {_FOLDER}/manifest.json; name a "
            "new or an empty directory"
        )
    if (path / "metadata").exists():
        raise CheckpointError(f"{path} is the checkpoint of another Spark query, not of a topology")


def _strange_entries(path: Path) -> list[str]:
    """Returns the names of what is in `path` and no part of a checkpoint, sorted."""
    known = {_FOLDER, "metadata", *_SPARKS_FOLDERS}
    try:
        return sorted(
            entry.name for entry in path.iterdir() if entry.name.lstrip(".").removesuffix(".crc") not in known
        )
    except OSError:  # missing, no directory, or unreadable: opening it reports that
        return []
