"""Files that clients upload in parts: in the inbox, of bounded size and number, removed if they are not submitted.

A client gets a location, which is a name and no path. What this Nimbus knows of an upload it keeps in memory: after a
restart a client begins again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from storm_on_spark.cluster.code.checksums import CODE, MAX_BYTES
from storm_on_spark.cluster.errors import ChecksumError, CodeError, LimitError
from storm_on_spark.cluster.nimbus.accepting.inbox import Inbox

MOST_UPLOADS: Final = 32
"""That this Nimbus keeps at the same time; half of the inbox."""
_LOCATION: Final = re.compile(r"stormjar-([0-9a-f]{32})\.jar")
_FILE: Final = "upload.jar"
_BLOCK: Final = 1 << 20


class _Upload:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.digest = hashlib.sha256()
        self.size = 0
        self.is_finished = False


class Uploads:
    """The uploads of one Nimbus. Any thread may use it.

    Args:
        limit: most bytes of a file.
    """

    def __init__(self, limit: int = MAX_BYTES[CODE]) -> None:
        self._limit = limit
        self.packing = threading.Lock()
        """Held while a file is unpacked in memory."""
        self._lock = threading.Lock()
        #: By key; changes under the lock.
        self._known: dict[str, _Upload] = {}

    def begin(self, inbox: Inbox) -> str:
        """Returns the location of a new upload.

        Raises:
            LimitError: there are too many already.
        """
        key = uuid.uuid4().hex
        with self._lock, inbox.using(key) as folder:
            for other in list(self._known):
                with inbox.using(other) as there:
                    if not there.exists():  # it has expired
                        del self._known[other]
            if len(self._known) >= MOST_UPLOADS:
                raise LimitError(f"{MOST_UPLOADS} uploads already wait for their submission; try again later")
            inbox.make(folder)
            os.close(os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            self._known[key] = _Upload()
        return f"stormjar-{key}.jar"

    def add(self, inbox: Inbox, location: str, chunk: bytes) -> None:
        """Appends a part.

        Raises:
            CodeError: there is no such upload, or it is finished.
            LimitError: it becomes too large; it is removed.
        """
        key, upload = self._of(location)
        with upload.lock, inbox.using(key) as folder:
            self._check(folder, location)
            if upload.is_finished:
                raise CodeError(f"the upload {location} is finished; begin another")
            too_large = upload.size + len(chunk) > self._limit
            if not too_large:
                with (folder / _FILE).open("ab") as file:
                    file.write(chunk)
                upload.digest.update(chunk)
                upload.size += len(chunk)
        if too_large:
            self.remove(inbox, location)
            raise LimitError(f"the upload {location} has more than the {self._limit:,} bytes that it may have")

    def finish(self, inbox: Inbox, location: str) -> None:
        """Ends an upload.

        Raises:
            CodeError: there is no such upload.
        """
        key, upload = self._of(location)
        with upload.lock, inbox.using(key) as folder:
            self._check(folder, location)
            upload.is_finished = True

    @contextlib.contextmanager
    def taking(self, inbox: Inbox, location: str) -> Iterator[Path]:
        """Yields the file of a finished upload, which is what was uploaded.

        Raises:
            CodeError: there is no such upload, or it is not finished.
            ChecksumError: the file has changed on the disk.
        """
        key, upload = self._of(location)
        with upload.lock, inbox.using(key) as folder:
            self._check(folder, location)
            if not upload.is_finished:
                raise CodeError(f"the upload {location} is not finished")
            path = folder / _FILE
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
            if digest.digest() != upload.digest.digest():
                raise ChecksumError(f"the upload {location} has changed on the disk of this Nimbus; upload it again")
            yield path

    def remove(self, inbox: Inbox, location: str) -> None:
        """Forgets an upload and removes its file."""
        key, _ = self._of(location)
        with self._lock:
            self._known.pop(key, None)
        inbox.remove(key)

    def _of(self, location: str) -> tuple[str, _Upload]:
        found = _LOCATION.fullmatch(location)
        upload = None if found is None else self._known.get(found[1])
        if found is None or upload is None:
            raise CodeError(f"{location[:100]!r} is not an upload of this Nimbus; begin one")
        return found[1], upload

    def _check(self, folder: Path, location: str) -> None:
        if not (folder / _FILE).exists():
            raise CodeError(f"the upload {location} has waited too long and is gone; begin another")
