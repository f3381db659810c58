"""A folder of a mounted POSIX file system as a store."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.runtime.storage.interface import Storage, StoredObject, checked

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Errors of file systems without hard links, such as many that show an object store as a folder."""


class LocalStorage(Storage):
    """Keeps each object in a file.

    Args:
        folder: made when something is written.
        synced: whether what was written survives the loss of the machine when a call returns, as far as the file
            system keeps its promises: file and folder are forced to the disk.
    """

    def __init__(self, folder: Path, *, synced: bool = False) -> None:
        self._folder = folder
        self._synced = synced
        self.url = str(folder)

    def create(self, name: str, data: bytes) -> None:
        """Makes an object by a hard link, which is whole and refuses a name that exists."""
        path = self._path(name)
        with self._written(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                self._refuse_another(path, data)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                if path.exists():
                    self._refuse_another(path, data)
                temporary.replace(path)

    def put(self, name: str, data: bytes) -> None:
        """Makes or replaces an object by renaming."""
        path = self._path(name)
        with self._written(path, data) as temporary:
            temporary.replace(path)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Returns bytes of an object."""
        with self._path(name).open("rb", buffering=0) as file:
            file.seek(start)
            return _all_of(file.fileno(), length)

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        """Returns the objects of a folder by name."""
        top = self._path(folder) if folder else self._folder
        found: list[StoredObject] = []
        self._collect(top, f"{folder}/" if folder else "", deep, found)
        return sorted(found)

    def delete(self, name: str) -> None:
        """Deletes an object. Its folder stays: another process may be about to write there."""
        self._path(name).unlink(missing_ok=True)

    def local_path(self) -> Path | None:
        """Returns the folder."""
        return self._folder

    def _path(self, name: str) -> Path:
        return self._folder / checked(name)

    def _collect(self, folder: Path, prefix: str, deep: bool, found: list[StoredObject]) -> None:
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if deep:
                    self._collect(folder / entry.name, f"{prefix}{entry.name}/", deep, found)
                continue
            with contextlib.suppress(FileNotFoundError):  # deleted since
                found.append(StoredObject(prefix + entry.name, entry.stat().st_size))

    @contextlib.contextmanager
    def _written(self, path: Path, data: bytes) -> Iterator[Path]:
        """Writes a file under a hidden name, for the caller to rename or link, and removes the hidden name."""
        temporary = path.parent / f".{uuid.uuid4().hex}.tmp"
        try:
            self._write(temporary, data)
            yield temporary
            if self._synced:
                _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)

    def _write(self, path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            file = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, flags, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            if self._synced:
                os.fsync(file)
        finally:
            os.close(file)

    def _refuse_another(self, path: Path, data: bytes) -> None:
        if path.read_bytes() != data:
            raise FileExistsError(errno.EEXIST, "exists with other content", str(path))


def _all_of(file: int, length: int | None) -> bytes:
    blocks: list[bytes] = []
    remaining = length
    while remaining is None or remaining > 0:
        block = os.read(file, 1 << 24 if remaining is None else min(remaining, 1 << 24))
        if not block:
            break
        blocks.append(block)
        if remaining is not None:
            remaining -= len(block)
    return b"".join(blocks)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
