"""Where the lines of rounds are: files of a directory, to which lines are appended, or objects of a store.

A store can't append. There a line waits until the object with the lines before it is written; all that wait by then are
the next object. `TOKEN/00000007-WRITER` is the eighth object of a file's. Its writer began after the last one that it
found; what an earlier writer adds after that doesn't count.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.storage import Folder, Storage
from storm_on_spark.runtime.storage.background import in_background
from storm_on_spark.runtime.storage.durable import sync_folder

_OBJECT: Final = re.compile(r"(\d{8})-([0-9a-f]{12})")
_AT_ONCE: Final = 8
"""How many objects are read at the same time."""


class RoundFiles(ABC):
    """Files of whole lines."""

    #: How many lines were given to `append` since the start.
    given = 0

    @property
    @abstractmethod
    def written(self) -> int:
        """How many of them have been written.

        Raises:
            OSError: the next one can't be.
        """

    @abstractmethod
    def append(self, name: str, line: bytes) -> None:
        """Adds a line to a file, which is made when missing.

        Raises:
            OSError: it can't be written.
        """

    @abstractmethod
    def finish(self) -> None:
        """Returns when all lines have been written.

        Raises:
            OSError: one can't be.
        """

    @abstractmethod
    def forget_others(self, kept: Collection[str]) -> None:
        """Removes all other files."""

    @abstractmethod
    def close(self) -> None:
        """Ends writing: what has not been written by then never is."""


class DirectoryFiles(RoundFiles):
    """Files of a directory.

    Args:
        folder: the directory.
        sync: whether each line must survive the loss of the machine.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        self._name, self._file = "", -1

    @property
    def written(self) -> int:
        """All lines."""
        return self.given

    def append(self, name: str, line: bytes) -> None:
        """Writes a line."""
        if name != self._name:
            self.close()
            self._file, self._name = self._open(name), name
        if os.write(self._file, line) != len(line):
            raise OSError("the disk took only a part of a round")
        if self._sync:
            os.fdatasync(self._file)
        self.given += 1

    def finish(self) -> None:
        """Does nothing: nothing waits."""

    def forget_others(self, kept: Collection[str]) -> None:
        """Removes all other files."""
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file."""
        if self._file >= 0:
            os.close(self._file)
        self._name, self._file = "", -1

    def _open(self, name: str) -> int:
        self._folder.mkdir(exist_ok=True)
        file = os.open(self._folder / name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(file).st_size
        whole = os.pread(file, size, 0).rfind(b"\n") + 1
        if whole < size:  # its writer was killed in the middle of a line
            os.ftruncate(file, whole)
        if self._sync:
            sync_folder(self._folder)
        return file


class StoredFiles(RoundFiles):
    """Files of a store, which a thread writes.

    Args:
        storage: the folder of all files.
        on_written: called by that thread when lines have been written, or one can't be.
        is_ours: whether what has been written counts; asked after each object.
    """

    def __init__(self, storage: Storage, on_written: Callable[[], object], is_ours: Callable[[], bool]) -> None:
        self._storage = storage
        self._on_written = on_written
        self._is_ours = is_ours
        self._writer = os.urandom(6).hex()
        self._waiting: list[tuple[str, bytes]] = []
        self._changed = threading.Condition()
        self._written = 0
        self._error: OSError | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self._cleaning: Future[None] | None = None

    @property
    def written(self) -> int:
        """Lines that the store has."""
        with self._changed:
            if self._error is not None:
                raise self._error
            return self._written

    def append(self, name: str, line: bytes) -> None:
        """Lets the thread write a line."""
        with self._changed:
            if self._error is not None:
                raise self._error
            self._waiting.append((name, line))
            self.given += 1
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="round-writer", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Returns when the store has all lines."""
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or self._written == self.given)
            if self._error is not None:
                raise self._error

    def forget_others(self, kept: Collection[str]) -> None:
        """Lets another thread remove all other files, unless it is still at it."""
        if self._cleaning is None or self._cleaning.done():
            self._cleaning = in_background(lambda: self._clean(frozenset(kept)), "round-cleaner")

    def close(self) -> None:
        """Waits for the object that is being written; lines behind it are dropped."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _write_all(self) -> None:
        file, number = "", 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                name = self._waiting[0][0]
                alike = next((at for at, (other, _) in enumerate(self._waiting) if other != name), len(self._waiting))
                lines = [line for _, line in self._waiting[:alike]]
                del self._waiting[:alike]
            error: OSError | None = None
            try:
                if name != file:
                    file, number = name, _next_number(self._storage, name)
                self._storage.create(f"{name}/{number:08d}-{self._writer}", b"".join(lines))
                number += 1
                if not self._is_ours():
                    error = OSError("another driver has taken over the checkpoint")
            except Exception as raised:  # whoever waits would wait for good
                error = raised if isinstance(raised, OSError) else OSError(f"{type(raised).__name__}: {raised}")
            with self._changed:
                self._error = error
                self._written += 0 if error else len(lines)
                self._changed.notify_all()
            self._on_written()
            if error:
                return

    def _clean(self, kept: frozenset[str]) -> None:
        for name in {found.name.partition("/")[0] for found in self._storage.list_folder(deep=True)} - kept:
            self._storage.delete_folder(name)


def _next_number(storage: Storage, name: str) -> int:
    return max((int(number) for _, number, _ in _objects(storage, name)), default=-1) + 1


def _objects(storage: Storage, name: str) -> list[tuple[str, str, str]]:
    """Returns name, number and writer of each object of a file, in this order but for the name."""
    found = ((one.name, _OBJECT.fullmatch(one.name.rpartition("/")[2])) for one in storage.list_folder(name))
    return sorted(((whole, part[1], part[2]) for whole, part in found if part), key=lambda one: one[1:])


def files_of(
    folder: Folder, *, sync: bool, on_written: Callable[[], object], is_ours: Callable[[], bool]
) -> RoundFiles:
    """Returns the files of a folder, for writing; see `DirectoryFiles` and `StoredFiles`."""
    return DirectoryFiles(folder, sync=sync) if isinstance(folder, Path) else StoredFiles(folder, on_written, is_ours)


def names_in(folder: Folder) -> list[str]:
    """Returns the names of all files in a folder."""
    if isinstance(folder, Path):
        return [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted({found.name.partition("/")[0] for found in folder.list_folder(deep=True)})


def read_lines(folder: Folder, name: str) -> list[bytes]:
    """Returns the whole lines of a file; none if there is no such file.

    Raises:
        OSError: it can't be read.
    """
    if isinstance(folder, Path):
        try:
            return (folder / name).read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
    names = _that_count(folder, name)
    if not names:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(names)), "round-reader") as threads:
        return [line for data in threads.map(folder.read, names) for line in data.split(b"\n")[:-1]]


def copy(storage: Storage, other: Storage) -> None:
    """Copies all files to another folder of a store, which has none; each is one object then.

    Raises:
        OSError: one can't be read or written.
    """
    writer = os.urandom(6).hex()
    for name in names_in(storage):
        other.create(f"{name}/{0:08d}-{writer}", b"".join(line + b"\n" for line in read_lines(storage, name)))


def _that_count(storage: Storage, name: str) -> list[str]:
    objects = _objects(storage, name)
    #: Each writer -> the number of its first object; ascending.
    began: dict[str, str] = {}
    for _, number, writer in objects:
        began.setdefault(writer, number)
    until = dict(pairwise(began))
    return [whole for whole, number, writer in objects if writer not in until or number < began[until[writer]]]
