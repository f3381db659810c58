"""Temporary folders whose owner holds a lock in them, so that what a killed process left can be found and removed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.ending.at_once import make_temporary, remove_temporary
from storm_on_spark.runtime.processes.owner_lock import own, take_over
from storm_on_spark.runtime.processes.sessions import is_on_a_command_line

PREFIX: Final = "storm-on-spark"
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
            _held[folder] = own(folder)
        except (BlockingIOError, FileNotFoundError):  # another process removed it first
            remove_temporary(folder)
            continue
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
    try:
        lock = take_over(folder)
    except FileNotFoundError:
        if time.time() - folder.lstat().st_mtime > _RUIN_SECS and not is_on_a_command_line(folder):
            shutil.rmtree(folder, ignore_errors=True)
        return
    if lock is None:
        return
    try:
        # Its JVM may be about to start. It ends by itself when it sees that its parent is gone, but not if it finds
        # nothing where it is to write first.
        if not is_on_a_command_line(folder):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
