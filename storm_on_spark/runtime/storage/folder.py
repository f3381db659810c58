"""A folder of files: a directory that is mounted everywhere, or one of a store.

In a directory the spout log appends. Stores can't append, so a directory is more than a store here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from storm_on_spark.runtime.storage.interface import Storage
from storm_on_spark.runtime.storage.local import LocalStorage
from storm_on_spark.runtime.storage.within import within

Folder: TypeAlias = "Path | Storage"


def inside(folder: Folder, *names: str) -> Folder:
    """Returns a folder below another one.

    Example:
        >>> inside(Path("checkpoint"), "spouts", "3")
        PosixPath('checkpoint/spouts/3')
    """
    for name in names:
        folder = folder / name if isinstance(folder, Path) else within(folder, name)
    return folder


def as_storage(folder: Folder, *, synced: bool = False) -> Storage:
    """Returns a folder as a store.

    Args:
        folder: which.
        synced: whether what is written to a directory must survive the loss of the machine; in a store it always does.
    """
    return LocalStorage(folder, synced=synced) if isinstance(folder, Path) else folder


def name_of(folder: Folder) -> str:
    """Returns the path or URL of a folder, for messages."""
    return str(folder) if isinstance(folder, Path) else folder.url
