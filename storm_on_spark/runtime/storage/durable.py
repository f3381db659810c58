"""Files and folders that survive the loss of the machine, if configured so.

Written data is in the kernel at once, and survives the process. It survives the machine once `fsync` has returned, for
the file and for its folder. Access is for the checkpoint's owner only: modes 0600 and 0700.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from pathlib import Path
from typing import Protocol

_NO_FSYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of file systems that have no `fsync` for folders."""


class Durable(Protocol):
    """Makes a micro-batch survive the loss of the machine, by one call for all of its files."""

    def force(self) -> None:
        """Forces everything that was written to the checkpoint to the disk.

        Raises:
            OSError: the disk fails.
        """

    def committed(self, batch: int) -> None:
        """Forces Spark's record that `batch` is committed to the disk.

        Raises:
            OSError: the disk fails.
        """


def make_folder(folder: Path, *, sync: bool) -> None:
    """Makes a folder and what is above it.

    Args:
        folder: it may exist.
        sync: whether the created folders must survive the loss of the machine.

    Raises:
        OSError: it can't be made.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent, sync=sync)
    folder.mkdir(mode=0o700, exist_ok=True)
    if sync:
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Forces creations, renames and removals in `folder` to the disk.

    Raises:
        OSError: the disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> None:
    """Forces everything that was written to the file system of `folder` to the disk.

    It includes data of other processes, and is one transaction of the file system's journal.

    Raises:
        OSError: the disk fails.
    """
    if syncfs is None:
        os.sync()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))
    finally:
        os.close(descriptor)


syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
"""Linux has it."""


def write_file(path: Path, data: bytes, *, sync: bool, temporary: str | None = None) -> None:
    """Writes a file atomically: it has all of `data`, or is as before.

    Args:
        path: of the file; one that exists is replaced.
        data: the new contents.
        sync: whether it must survive the loss of the machine.
        temporary: the name under which it is written, where others write the same file.

    Raises:
        OSError: the disk is full or fails.
    """
    unfinished = path.with_name(temporary) if temporary else path.with_suffix(".tmp")
    try:
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, data)
            if sync:
                os.fsync(file)
        finally:
            os.close(file)
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of `data`, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
