"""Files beside the journals: made once, or written as a whole."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from storm_on_spark.runtime.storage.durable import make_folder, sync_folder, write_file
from storm_on_spark.xd.bus.store import StoreFolder

_INSTANCE: Final = re.compile(r"[1-9][0-9]{0,5}")
TAKERS: Final = "takers"
_FOLDERS: Final = {False: "readers", True: TAKERS}

F = TypeVar("F", bound="Folder")


class Folder(Protocol):
    """A folder or a file, on a disk or in a store: what `Path` and `StoreFolder` have in common."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    def __truediv__(self: F, name: str, /) -> F: ...

    def iterdir(self: F) -> Iterator[F]:
        """Yields what is in a folder; a `FileNotFoundError` means the same as an empty one."""

    def read_bytes(self) -> bytes:
        """Returns the contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file."""


def instances(folder: Folder) -> list[str]:
    """Returns the names of the folders of a module's instances, in order."""
    with contextlib.suppress(FileNotFoundError):
        return sorted((path.name for path in folder.iterdir() if _INSTANCE.fullmatch(path.name)), key=int)
    return []


class Read(NamedTuple):
    """How far an instance has read a journal."""

    number: int
    """Of the first record that it still needs; 0 if it has not begun."""
    generation: int
    """Of the deployment that it belongs to."""


def say_read(folder: Folder, reader: str, read: Read, *, taker: bool = False) -> None:
    """Says how far an instance has read a journal.

    Args:
        folder: of the journal.
        reader: the instance's name.
        read: how far.
        taker: whether it reads a queue, from which it takes records.
    """
    write_whole(folder / _FOLDERS[taker] / reader, f"{read.number} {read.generation}".encode())


def read_by(folder: Folder, reader: str, *, taker: bool = False) -> Read:
    """Returns how far an instance has read a journal; see `say_read`."""
    try:
        number, generation = (folder / _FOLDERS[taker] / reader).read_bytes().split()
        return Read(int(number), int(generation))
    except (FileNotFoundError, ValueError):
        return Read(0, 0)


def readers(folder: Folder) -> dict[str, Read]:
    """Returns how far each instance has read a journal, without those that take records from a queue."""
    with contextlib.suppress(FileNotFoundError):
        names = [path.name for path in (folder / _FOLDERS[False]).iterdir() if not path.name.startswith(".")]
        return {name: read_by(folder, name) for name in names}
    return {}


def make_once(path: Folder, body: bytes, *, sync: bool = False) -> bool:
    """Makes a file as a whole, unless it is there; returns whether it was made. `read_once` reads it.

    Args:
        path: of the file.
        body: all of it, a text.
        sync: whether it must survive the loss of the machine.
    """
    if isinstance(path, StoreFolder):
        return path.make_once(body)
    assert isinstance(path, Path)
    half = path.with_name(f".{uuid.uuid4().hex}.tmp")
    write_whole(half, body, sync=sync)
    try:
        os.link(half, path)
    except FileExistsError:
        return False
    finally:
        half.unlink(missing_ok=True)
    if sync:
        sync_folder(path.parent)
    return True


def read_once(path: Folder) -> bytes:
    """Returns what `make_once` has made.

    Raises:
        FileNotFoundError: it has not.
    """
    return path.read_once() if isinstance(path, StoreFolder) else path.read_bytes()


def remove_once(path: Folder) -> None:
    """Removes what `make_once` has made."""
    if isinstance(path, StoreFolder):
        path.remove_once()
    else:
        path.unlink(missing_ok=True)


def write_whole(path: Folder, body: bytes, *, sync: bool = False) -> None:
    """Writes a file as a whole, in the place of one that is there.

    Args:
        path: of the file.
        body: all of it.
        sync: whether it must survive the loss of the machine.
    """
    if isinstance(path, StoreFolder):
        path.write_bytes(body)
        return
    assert isinstance(path, Path)
    make_folder(path.parent, sync=sync)
    write_file(path, body, sync=sync, temporary=f".{uuid.uuid4().hex}.tmp")
