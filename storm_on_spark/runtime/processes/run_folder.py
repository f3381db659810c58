"""A folder on this machine for the files of one start of a topology. Its removal means that the run is over."""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from pathlib import Path

from storm_on_spark.runtime.processes.ending.at_once import remove_temporary

_PREFIX = "storm-run-"
MOST_SOCKET_PATH = 105
"""The path of a Unix socket may have 107 bytes (Linux), and that of a live process is two longer until it listens."""


def new_start_id() -> str:
    """Returns an id for a start. It is short, because paths of sockets contain it and the folder of a slot."""
    return uuid.uuid4().hex[:16]


def run_folder(start_id: str) -> Path:
    """Returns where the folder of a start is; it may not exist.

    Example:
        >>> run_folder("4f").name
        'storm-run-4f'
    """
    return Path(tempfile.gettempdir(), _PREFIX + start_id)


def make_private(folder: Path) -> None:
    """Makes a folder that only this user can read, unless it exists.

    Raises:
        PermissionError: it exists and belongs to another user, or others may write to it.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} exists, and users other than this one (id {os.getuid()}) can use it")


def remove_run_folder(start_id: str) -> None:
    """Removes the folder of a start, if there is one, and ends child processes whose files are in it."""
    remove_temporary(run_folder(start_id))
