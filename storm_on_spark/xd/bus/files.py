"""Files beside the journals: created once, or replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import Final, NamedTuple

from storm_on_spark.runtime.storage.durable import make_folder, sync_folder, write_file

TAKERS: Final = "takers"
_FOLDERS: Final = {False: "readers", True: TAKERS}


class Read(NamedTuple):
    """How far an instance has read a journal."""

    number: int
    """The first record that the reader still needs; 0 if it has not begun."""
    generation: int
    """The generation of the reader's deployment."""


def say_read(folder: Path, reader: str, read: Read, *, taker: bool = False) -> None:
    """Records how far an instance has read a journal.

    Args:
        folder: of the journal.
        reader: the instance's name.
        read: how far.
        taker: whether it takes records from a queue.
    """
    write_whole(folder / _FOLDERS[taker] / reader, f"{read.number} {read.generation}".encode())


def read_by(folder: Path, reader: str, *, taker: bool = False) -> Read:
    """Returns how far an instance has read a journal; see `say_read`."""
    try:
        number, generation = (folder / _FOLDERS[taker] / reader).read_bytes().split()
        return Read(int(number), int(generation))
    except (FileNotFoundError, ValueError):
        return Read(0, 0)


def readers(folder: Path) -> dict[str, Read]:
    """Returns how far each instance has read a journal, without those that take records from a queue."""
    with contextlib.suppress(FileNotFoundError):
        names = [path.name for path in (folder / _FOLDERS[False]).iterdir() if not path.name.startswith(".")]
        return {name: read_by(folder, name) for name in names}
    return {}


def make_once(path: Path, body: bytes, *, sync: bool = False) -> bool:
    """Creates a file with its whole body unless it exists; returns whether it was created.

    Args:
        path: of the file.
        body: all of it.
        sync: whether it must survive the loss of the machine.
    """
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


def write_whole(path: Path, body: bytes, *, sync: bool = False) -> None:
    """Writes a file as a whole, and replaces an existing one.

    Args:
        path: of the file.
        body: all of it.
        sync: whether it must survive the loss of the machine.
    """
    make_folder(path.parent, sync=sync)
    write_file(path, body, sync=sync, temporary=f".{uuid.uuid4().hex}.tmp")
