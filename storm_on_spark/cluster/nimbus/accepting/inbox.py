"""Where uploaded artifacts wait for their submission: `<storm.local.dir>/nimbus/inbox/<key>/<artifact>`.

An artifact appears complete or not at all. Uploads without a submission go after `nimbus.inbox.jar.expiration.secs`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from storm_on_spark.cluster.code.checksums import MAX_BYTES
from storm_on_spark.cluster.errors import CodeError, LimitError
from storm_on_spark.cluster.nimbus.accepting.submission import check_key
from storm_on_spark.cluster.records import ArtifactInfo

MAX_SUBMISSIONS: Final = 64
"""Uploads that may wait at the same time, so that a client that uploads and never submits can't fill the disk."""


class Inbox:
    """Keeps artifacts until they are submitted. Any thread may use it.

    Args:
        root: folder of its own; made, for its owner only.
        expiration_secs: time after which uploads that were not submitted are removed.
        now: seconds since the epoch, as the file system counts them.
    """

    def __init__(self, root: Path, expiration_secs: float, now: Callable[[], float] = time.time) -> None:
        self._root = root
        self._expiration_secs = expiration_secs
        self._now = now
        self._lock = threading.Lock()
        #: Keys that are in use, and by how many; changes under the lock.
        self._used: dict[str, int] = {}
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)

    @contextlib.contextmanager
    def using(self, key: str) -> Iterator[Path]:
        """Yields the folder of a submission, which may not exist; it doesn't expire while it is in use."""
        check_key(key)
        with self._lock:
            self._used[key] = self._used.get(key, 0) + 1
        try:
            yield self._root / key
        finally:
            with self._lock:
                self._used[key] -= 1
                if not self._used[key]:
                    del self._used[key]

    @contextlib.contextmanager
    def receiving(self, key: str, name: str) -> Iterator[Receiver]:
        """Yields a receiver of an artifact; the artifact exists once `finish` was called, and not at all before.

        Raises:
            CodeError: there is no artifact of that name.
            LimitError: too many submissions wait already.
        """
        if name not in MAX_BYTES:
            raise CodeError(f"there is no artifact {name[:100]!r}; there are {', '.join(MAX_BYTES)}")
        with self.using(key) as folder:
            self.make(folder)
            scratch = folder / f".{uuid.uuid4().hex}"
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    yield Receiver(file, scratch, folder / name, MAX_BYTES[name])
            finally:
                scratch.unlink(missing_ok=True)

    def make(self, folder: Path) -> None:
        """Makes the folder that `using` has yielded, if it is not there.

        Raises:
            LimitError: too many submissions wait already.
        """
        if not folder.exists() and len(list(self._root.iterdir())) >= MAX_SUBMISSIONS:
            raise LimitError(f"{MAX_SUBMISSIONS} submissions already wait in the inbox; try again later")
        folder.mkdir(mode=0o700, exist_ok=True)

    def remove(self, key: str) -> None:
        """Removes what was uploaded for a submission, unless it is in use."""
        with self._lock:
            if check_key(key) not in self._used:
                shutil.rmtree(self._root / key, ignore_errors=True)

    def expire(self) -> None:
        """Removes what has waited too long."""
        for folder in list(self._root.iterdir()):
            with contextlib.suppress(OSError), self._lock:
                if folder.name not in self._used and self._now() - folder.stat().st_mtime >= self._expiration_secs:
                    shutil.rmtree(folder, ignore_errors=True)


class Receiver:
    """Takes one artifact in."""

    def __init__(self, file: IO[bytes], scratch: Path, path: Path, limit: int) -> None:
        self._file = file
        self._scratch = scratch
        self._path = path
        self._digest = hashlib.sha256()
        self._size = 0
        self.limit = limit
        """Most bytes that the artifact may have."""

    def write(self, data: bytes) -> None:
        """Takes a part in.

        Raises:
            LimitError: it is more than there may be.
        """
        self._size += len(data)
        if self._size > self.limit:
            raise LimitError(f"{self._path.name} has more than the {self.limit:,} bytes that it may have")
        self._digest.update(data)
        self._file.write(data)

    def finish(self) -> ArtifactInfo:
        """Makes the upload visible, and returns its description."""
        self._file.flush()
        self._scratch.rename(self._path)
        return ArtifactInfo(name=self._path.name, size=self._size, sha256=self._digest.hexdigest())
