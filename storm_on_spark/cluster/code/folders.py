"""A folder of artifacts appears at once and complete, or not at all."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from storm_on_spark.cluster.code.checksums import check_artifact, copy_verified
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.records import ArtifactInfo
from storm_on_spark.runtime.processes import lock_file


def holds_all(folder: Path, artifacts: Sequence[ArtifactInfo]) -> bool:
    """Returns whether a folder has exactly these artifacts; every byte is read."""
    try:
        if {entry.name for entry in folder.iterdir()} != {info.name for info in artifacts}:
            return False
        for info in artifacts:
            copy_verified(folder, info, None)
    except (OSError, CodeError):
        return False
    return True


def paths_of(folder: Path, artifacts: Sequence[ArtifactInfo]) -> list[Path]:
    """Returns where the artifacts are, sorted."""
    return sorted(folder / info.name for info in artifacts)


def replace(scratch: Path, folder: Path) -> None:
    """Puts the complete folder `scratch` in the place of `folder`, on disk too."""
    sync(scratch)
    if os.path.lexists(folder):
        old = scratch.with_name(f"{scratch.name}.old")
        folder.rename(old)
        scratch.rename(folder)
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink()
    else:
        scratch.rename(folder)
    sync(folder.parent)


def sync(folder: Path) -> None:
    """Makes what a folder's entries are survive the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Makes a folder, and those above it that aren't there, for their owner only."""
    # pathlib's own `parents=True` lets everybody into those above.
    if not folder.parent.is_dir():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def scratch_of(folder: Path) -> Iterator[Path]:
    """Makes an empty folder beside `folder`, and removes it at the end if it is still there.

    Raises:
        CodeError: the file system refuses.
    """
    scratch = folder.parent / f".{folder.name[:200]}.{uuid.uuid4().hex}"
    try:
        make_private(folder.parent)
        scratch.mkdir(mode=0o700)
        yield scratch
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def unwritable(folder: Path, error: OSError) -> CodeError:
    """Returns the error for a folder that can't be made beside others: what has to be mended, and where."""
    return CodeError(
        f"code can't be written to {folder} on {socket.gethostname()}: {error.strerror or error}. {folder.parent} "
        f"must be a folder that {_user()} may write to, on a disk with room left; mend that, then try again"
    )


def _user() -> str:
    try:
        return f"user {getpass.getuser()}"
    except (KeyError, OSError):
        # A user without a name, as containers have.
        return f"user {os.getuid()}"


def remove_scratch(parent: Path) -> None:
    """Removes what `scratch_of` made in `parent` and a killed process could not remove."""
    for path in parent.iterdir():
        if re.fullmatch(r"\..+\.[0-9a-f]{32}(\.old)?", path.name):
            shutil.rmtree(path, ignore_errors=True)


def create(path: Path) -> IO[bytes]:
    """Opens a new file for writing, for its owner only."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def store(artifacts: Sequence[ArtifactInfo], folder: Path, write: Callable[[ArtifactInfo, IO[bytes]], None]) -> None:
    """Makes `folder` hold the artifacts, each written by `write` and synchronized with the disk.

    Raises:
        CodeError: the file system refuses, or `write` raised it; `folder` is as it was.
    """
    with scratch_of(folder) as scratch:
        for info in artifacts:
            check_artifact(info, str(folder))
            with create(scratch / info.name) as file:
                write(info, file)
                file.flush()
                os.fsync(file.fileno())
        replace(scratch, folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes a private folder and holds its lock: one thread of one process at a time.

    The system gives the lock back if the process dies.
    """
    descriptor = lock_file.locked(folder, wait=True, opened=_made)
    try:
        yield
    finally:
        os.close(descriptor)


def _made(folder: Path) -> int:
    while True:
        make_private(folder)
        with contextlib.suppress(FileNotFoundError):  # removed by the one that held it before
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
