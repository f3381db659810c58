"""Lock files: a process holds a lock on one while it uses what the file stands for."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def open_lock(path: Path) -> int:
    """Opens a lock file; it is made if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def locked(path: Path, *, wait: bool = False, opened: Callable[[Path], int] = open_lock) -> int:
    """Returns a descriptor that holds a lock until it is closed, or this process ends.

    Between opening and locking, another process may remove the file, and a third one create and lock a new one. So the
    locked file is compared with the one that has the name now. This is safe as long as no process removes a file that
    another one has locked.

    Args:
        path: of the file.
        wait: whether to wait until no other holds the lock.
        opened: opens the file, or folder, and makes it if it is missing.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is false.
        OSError: the file can't be opened, or its file system has no locks.
    """
    while True:
        descriptor = opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            os.close(descriptor)
            raise
        if is_file(descriptor, path):
            return descriptor
        os.close(descriptor)


def is_file(descriptor: int, path: Path) -> bool:
    """Returns whether an open file is still the one of that name."""
    try:
        there, here = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
