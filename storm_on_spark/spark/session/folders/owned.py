"""Temporary folders whose owner holds a lock in them, so that what a killed process left can be found and removed.

A process id does not identify an owner: containers that share `/tmp` have processes with the same ids. A lock on a file
in the folder does: the kernel releases it when the owner ends, however it ends. A process that gets the lock may remove
the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.ending.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.lock_file import is_file, locked, open_lock
from storm_on_spark.runtime.processes.sessions import is_on_a_command_line

PREFIX: Final = "storm-on-spark"
_LOCK: Final = "owner.lock"
_RUIN_SECS: Final = 600.0
"""How old a folder without a lock file must be before it is removed. A dying process may create its folder again after
it was removed; a new folder has no lock file for a moment."""

_held: dict[Path, int] = {}
"""Folder -> descriptor of the lock on it, in this process."""


def make_owned(parent: Path | None = None) -> Path:
    """Makes a temporary folder that belongs to this process until `remove_owned`.

    Args:
        parent: where to make it; the folder for temporary files for None.
    """
    while True:
        folder = make_temporary(f"{PREFIX}-{os.getpid()}-", parent)
        try:
            lock = locked(folder / _LOCK)
        except (BlockingIOError, FileNotFoundError):  # another process removed it first
            remove_temporary(folder)
            continue
        except OSError:
            lock = open_lock(folder / _LOCK)  # a file system without locks: no other process gets one either
        _held[folder] = lock
        return folder


def remove_owned(folder: Path) -> None:
    """Removes a folder that `make_owned` made. What can't be removed stays."""
    remove_temporary(folder)
    lock = _held.pop(folder, None)
    if lock is not None:
        os.close(lock)


@contextlib.contextmanager
def owned_folder(parent: Path) -> Iterator[Path]:
    """Yields a new folder in `parent`, which is removed at the end.

    What killed processes left there is removed first.
    """
    remove_abandoned([parent])
    folder = make_owned(parent)
    try:
        yield folder
    finally:
        remove_owned(folder)


@contextlib.contextmanager
def temporary_checkpoint() -> Iterator[Path]:
    """Yields the path of a new checkpoint that is removed at the end."""
    with owned_folder(Path(tempfile.gettempdir())) as folder:
        yield folder / "checkpoint"


def remove_abandoned(roots: Iterable[Path]) -> None:
    """Removes the folders in `roots` that `make_owned` made and whose owner is gone."""
    for root in roots:
        for folder in root.glob(f"{PREFIX}-*"):
            if re.fullmatch(rf"{PREFIX}-\d+-\w+", folder.name):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - found.st_mtime > _RUIN_SECS and not is_on_a_command_line(folder):
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its JVM may be about to start. It ends by itself when it sees that its parent is gone, but not if it finds
        # nothing where it is to write first.
        if is_file(lock, folder / _LOCK) and not is_on_a_command_line(folder):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
