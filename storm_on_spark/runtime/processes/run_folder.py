"""A folder on this machine for the files of one start of a topology. Its removal means that the run is over.

The driver's holds a lock. What a driver and all its processes leave there that are killed at once, the next start
removes. On other machines executors make it when they need it, and it has no lock.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.runtime.processes.ending.at_once import belongs_here, remove_temporary
from storm_on_spark.runtime.processes.owner_lock import own, take_over

_PREFIX = "storm-run-"
_STARTS = re.compile(rf"{_PREFIX}[0-9a-f]+")
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


@contextlib.contextmanager
def owned_run_folder(start_id: str) -> Iterator[Path]:
    """Makes the folder of a start for its driver, and removes it at the end of the block.

    What killed drivers left is removed first.

    Raises:
        OSError: it can't be made.
    """
    for abandoned in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _STARTS.fullmatch(abandoned.name):
            remove_if_abandoned(abandoned)
    folder = run_folder(start_id)
    belongs_here(folder)
    lock = None
    try:
        lock = _owned(folder)
        yield folder
    finally:
        remove_temporary(folder)
        if lock is not None:
            os.close(lock)


def _owned(folder: Path) -> int:
    while True:
        make_private(folder)
        try:
            return own(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another process has removed it, which found it before it had an owner


def remove_if_abandoned(folder: Path) -> None:
    """Removes the folder of a start if its driver is gone; does nothing with one that no driver has made."""
    with contextlib.suppress(OSError):  # no driver has made it, or it is gone
        lock = take_over(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def remove_run_folder(start_id: str) -> None:
    """Removes the folder of a start, if there is one, and ends child processes whose files are in it."""
    remove_temporary(run_folder(start_id))
