"""The interface of stores: whole objects by name, without operations that only a disk has.

There is no append, no lock and no rename, because object stores have none of them. There is also no compare-and-swap:
S3 has one, but `pyarrow.fs` can't ask for it, and a request that is sent again after a lost answer would find its own
object and take it for another writer's. So one rule holds for all stores:

    Two writers never make the same name. A name that could be made twice carries what tells its writer from all
    others, its epoch for example, and readers have a rule that says whose object counts.

A writer may therefore repeat `create` when it does not know whether the first attempt arrived. Where the store can
check, `create` refuses a name that exists with other bytes; that is a second line of defence, and nothing relies on it.

Every store must show a finished `create`, `put` or `delete` to all readers at once, in listings too. POSIX, HDFS, S3
(since 2020), GCS and Azure do.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(r"[A-Za-z0-9_=+-][A-Za-z0-9._=+-]{0,199}")


@dataclass(frozen=True, order=True)
class StoredObject:
    """One object of a listing."""

    name: str
    """Its whole name, from the root of the store."""
    size: int
    """In bytes."""


class Storage(ABC):
    """A folder of immutable objects. All methods may be called by several threads.

    A name is one or more parts with `/` between them. A part consists of ASCII letters, digits and `._=+-`, and begins
    with no dot: stores keep unfinished objects under such names. Folders need not be made.

    All errors are `OSError`s. After one that is neither `FileExistsError` nor `FileNotFoundError`, it is unknown
    whether the call took effect; calling it again does no harm.
    """

    url: str
    """Where it is, for messages; without secrets."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """Makes an object; readers see all of it or nothing.

        The name must be this writer's own: no other writer may ever make it.

        Raises:
            FileExistsError: the name exists with other bytes, as far as the store can tell.
            OSError: it can't be written.
        """

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Makes an object, or replaces it; readers see all of the old one or all of the new one.

        Only for what one writer owns, or where it does not matter which writer was last.

        Raises:
            OSError: it can't be written.
        """

    @abstractmethod
    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Returns bytes of an object; fewer than asked for where it ends.

        Args:
            name: of the object.
            start: the first byte.
            length: how many; to the end for None.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: it can't be read.
        """

    @abstractmethod
    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        """Returns the objects of a folder by name; none if there is no such folder.

        Args:
            folder: the beginning of their names, without the last `/`; everything for "".
            deep: whether to go into folders below it.

        Raises:
            OSError: it can't be listed.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Deletes an object; without effect if there is none.

        Raises:
            OSError: it can't be deleted.
        """

    def delete_folder(self, folder: str) -> None:
        """Deletes all objects of a folder and of those below it; without effect if there are none.

        Raises:
            OSError: one can't be deleted.
        """
        for found in self.list_folder(folder, deep=True):
            self.delete(found.name)

    def remove_half_written(self) -> None:  # noqa: B027 # most keep nothing of what was begun
        """Removes unfinished objects of writers that were killed. Only for the owner of the folder.

        Raises:
            OSError: it can't be removed.
        """

    def local_path(self) -> Path | None:
        """Returns its folder if it is a mounted file system, else None."""
        return None

    def close(self) -> None:  # noqa: B027 # most have nothing to close
        """Closes connections; without effect the second time."""


def checked(name: str) -> str:
    """Returns `name` if it is one that every store takes.

    Raises:
        ValueError: it is not.

    Example:
        >>> checked("spouts/3/00000000000000000128-7.log")
        'spouts/3/00000000000000000128-7.log'
        >>> checked("../other")
        Traceback (most recent call last):
        ...
        ValueError: '../other' is not an object's name: parts of ASCII letters, digits and ._=+- that begin with no dot
    """
    if not all(map(_PART.fullmatch, name.split("/"))):
        raise ValueError(
            f"{name!r} is not an object's name: parts of ASCII letters, digits and ._=+- that begin with no dot"
        )
    return name
