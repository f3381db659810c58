"""The checkpoint directory of a topology.

Spark's own checkpoint (`metadata`, `offsets`, `commits`, `state`, `sources`) is the directory itself, so Spark's tools
read it as any other. What Spark on Storm adds is in its subfolder `storm`:

    storm/manifest.json   which topology this is, and what of it may not change
    storm/lock            held while the topology runs
    storm/owner.json      which driver of a cluster may run on it; see `owner`
    storm/spouts/TASK/    the spout logs
    storm/outcomes/       acks and fails that a spout may have to be told again
    storm/carried/        tuples of back edges on their way to the next micro-batch
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.plan.model import PhysicalPlan
from storm_on_spark.runtime.offsets import Offset

VERSION = 1
_FOLDER = "storm"
_SPARKS_FOLDERS = ("offsets", "commits", "state", "sources")
_MANIFEST_BYTES = 16 << 20


@dataclass(frozen=True)
class Manifest:
    """What the checkpoint remembers of its topology."""

    name: str
    storm_id: str
    partitions: int
    fingerprint: dict[str, Any]


class Checkpoint:
    """An open checkpoint; only one running topology can have it.

    Args:
        path: a directory, or a `file:` URI of one; it must be reachable under the same path from all workers. A
            temporary one for None, removed by `close`.

    Raises:
        CheckpointError: it can't be used, or another topology runs on it.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="storm-on-spark-")) if path is None else local_directory(path)
        self.folder = self.path / _FOLDER
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.path} can't be written: {error.strerror or error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise CheckpointError(
                f"checkpoint {self.path} is in use by a running topology; stop that, or choose another directory"
            ) from None

    def manifest(self) -> Manifest | None:
        """Returns what an earlier start wrote; None in a new checkpoint.

        Raises:
            CheckpointError: it can't be read or is of another version.
        """
        return read_manifest(self.path)

    def claim(self, name: str, plan: PhysicalPlan) -> Manifest:
        """Writes the manifest of a new checkpoint, or checks that the topology may go on from an old one.

        Args:
            name: the topology's name.
            plan: with its partitions.

        Raises:
            CheckpointError: the checkpoint belongs to another topology, or one that changed too much.
        """
        now = fingerprint(plan)
        old = self.manifest()
        assert plan.partitions is not None
        if old is not None:
            if old.name != name:
                raise CheckpointError(
                    f"checkpoint {self.path} belongs to topology {old.name!r}, not to {name!r}; "
                    "choose another directory, or --reset-checkpoint to start afresh"
                )
            problems = compare(old.fingerprint, now)
            if problems:
                raise CheckpointError(
                    f"topology {name!r} changed in a way that its checkpoint {self.path} does not allow: "
                    + "; ".join(problems)
                    + ". Undo the change, choose another directory, or --reset-checkpoint to start afresh"
                )
            # What was added since counts from now on.
            return self._write(dataclasses.replace(old, fingerprint=now))
        return self._write(Manifest(name, f"{name}-{uuid.uuid4().hex[:12]}", plan.partitions, now))

    def _write(self, manifest: Manifest) -> Manifest:
        data = {"version": VERSION, **manifest.__dict__}
        temporary = self.folder / "manifest.tmp"
        temporary.write_text(json.dumps(data, indent=1, sort_keys=True))
        temporary.replace(self.folder / "manifest.json")
        return manifest

    def planned(self) -> Offset:
        """Returns the last offset that Spark planned a micro-batch up to.

        Raises:
            CheckpointError: Spark's offset log can't be read.
        """
        folder = self.path / "offsets"
        numbers = [int(p.name) for p in folder.iterdir() if p.name.isdigit()] if folder.is_dir() else []
        if not numbers:
            return Offset()
        path = folder / str(max(numbers))
        lines = path.read_text().splitlines()
        try:
            # Spark's format: version, metadata of the batch, then one line for each source.
            return Offset.from_json(json.loads(lines[2]))
        except (IndexError, ValueError, KeyError) as error:
            raise CheckpointError(f"Spark's offset log {path} can't be read: {error}") from error

    def remove_half_written(self) -> None:
        """Removes files that Spark began and did not finish, because its process was killed or the disk was full.

        Spark writes under a hidden name and renames; what is left under such a name it never looks at again. Only for
        the owner of the checkpoint, while no query runs on it.
        """
        for name in _SPARKS_FOLDERS:
            for folder, _, files in os.walk(self.path / name):
                for file in files:
                    if file.startswith(".") and file.removesuffix(".crc").endswith(".tmp"):
                        Path(folder, file).unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the checkpoint up, and removes it if it is temporary."""
        os.close(self._lock)
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)


def read_manifest(path: str | os.PathLike[str]) -> Manifest | None:
    """Returns what the first start of a topology wrote to a checkpoint; None in a new one.

    Raises:
        CheckpointError: it can't be read, is of another version, or is no topology's.
    """
    checkpoint = local_directory(path)
    file = checkpoint / _FOLDER / "manifest.json"
    if not file.exists():
        if (checkpoint / "metadata").exists():
            raise CheckpointError(f"{checkpoint} is the checkpoint of another Spark query, not of a topology")
        return None
    try:
        data = json.loads(file.read_bytes()[:_MANIFEST_BYTES])
        version = data["version"]
        if version != VERSION:
            raise CheckpointError(f"{file} has format version {version}; this release reads version {VERSION}")
        return Manifest(data["name"], data["storm_id"], int(data["partitions"]), data["fingerprint"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} can't be read: {type(error).__name__}: {error}") from error


def reset_checkpoint(path: str | os.PathLike[str]) -> None:
    """Removes a topology's checkpoint, so that it starts afresh.

    Raises:
        CheckpointError: it is in use, or the directory is something else.
    """
    target = local_directory(path)
    if not target.exists():
        return
    checkpoint = Checkpoint(target)
    try:
        known = {_FOLDER, "metadata", *_SPARKS_FOLDERS}
        strange = [entry.name for entry in target.iterdir() if entry.name.lstrip(".").removesuffix(".crc") not in known]
        if strange:
            raise CheckpointError(
                f"{target} holds {sorted(strange)[0]!r}, which is no part of a checkpoint; remove it by hand"
            )
        for entry in target.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    finally:
        checkpoint.close()


def local_directory(path: str | os.PathLike[str]) -> Path:
    """Returns the directory of a checkpoint.

    Args:
        path: the directory, or a `file:` URI of it.

    Raises:
        CheckpointError: it is a URI of something else.
    """
    text = os.fspath(path)
    parsed = urlparse(text)
    if parsed.scheme not in ("", "file"):
        raise CheckpointError(
            f"checkpoint {text!r} is not a directory of a mounted file system; spout logs need one that all workers "
            "see under the same path"
        )
    return Path(unquote(parsed.path) if parsed.scheme else text).absolute()
