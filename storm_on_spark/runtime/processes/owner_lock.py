"""The lock that the owner of a temporary folder holds on a file in it.

A process id does not identify an owner: containers that share `/tmp` have processes with the same ids. A lock does: the
kernel releases it when the owner ends, however it ends. A process that gets the lock may remove the folder.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from storm_on_spark.runtime.processes.lock_file import is_file, locked, open_lock

_NAME: Final = "owner.lock"


def own(folder: Path) -> int:
    """Makes this process the owner of a new folder until the descriptor that it returns is closed.

    Raises:
        BlockingIOError: another process is about to remove the folder.
        FileNotFoundError: it has.
    """
    try:
        return locked(folder / _NAME)
    except (BlockingIOError, FileNotFoundError):
        raise
    except OSError:
        return open_lock(folder / _NAME)  # a file system without locks: no other process gets one either


def take_over(folder: Path) -> int | None:
    """Takes the lock on a folder of this user's whose owner is gone, as nobody else can until it is closed.

    Returns:
        Its descriptor; None if the folder has an owner, or does not belong to this user.

    Raises:
        FileNotFoundError: the folder has no lock file, or is gone.
        OSError: the lock file can't be opened, or is a link.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return None
    lock = os.open(folder / _NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_file(lock, folder / _NAME):
            return lock
    except OSError:
        pass  # its owner lives
    os.close(lock)
    return None
