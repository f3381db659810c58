"""The file in which other commands find the `storm-spark dev` that runs on this host.

The process that runs it holds a lock on the file, and so does its guard until it has cleaned up. A file without the
lock is stale. This also holds after SIGKILL and after the host was switched off. A process id alone would not do,
because another process may have it by now.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.lock_file import is_file
from storm_on_spark.spark.session.folders.dirs import state_dir, writable_dir

if TYPE_CHECKING:
    from storm_on_spark.cli.client.dev_document import DevRecord

_NAME: Final = "dev.json"
_ATTEMPTS: Final = 20
_PAUSE_SECS: Final = 0.05


class DevFile:
    """The file, locked by the process that runs the cluster.

    Args:
        descriptor: the locked file's descriptor; the guard inherits it.
        path: the file's path.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path

    @classmethod
    def take(cls, sleep: Callable[[float], object] = time.sleep) -> DevFile:
        """Returns the locked file.

        Raises:
            SetupError: another cluster runs, or the file can't be created.
        """
        path = path_of()
        if not writable_dir(path.parent):
            raise SetupError(f"{path.parent} can't be written to; set XDG_STATE_HOME to a folder that can")
        for _ in range(_ATTEMPTS):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise SetupError(f"{path} can't be written: {error.strerror}; remove it") from error
            if _locked(descriptor, fcntl.LOCK_EX) and is_file(descriptor, path):
                os.truncate(descriptor, 0)
                return cls(descriptor, path)
            os.close(descriptor)
            sleep(_PAUSE_SECS)  # another process may be reading it just now
        record, _ = find()
        which = "is starting or ending" if record is None else f"has the process id {record.pid}"
        raise SetupError(
            f"a `storm-spark dev` already runs here: it {which}. Use that one, or end it with Ctrl-C in its terminal."
        )

    def write(self, record: DevRecord) -> None:
        """Writes where the cluster is."""
        from storm_on_spark.cluster.records import encode

        content = encode(record)
        os.pwrite(self.descriptor, content, 0)
        os.truncate(self.descriptor, len(content))

    def remove(self) -> None:
        """Removes the file and releases the lock."""
        with contextlib.suppress(FileNotFoundError):
            if is_file(self.descriptor, self.path):
                self.path.unlink()
        self.leave()

    def leave(self) -> None:
        """Leaves the file to the guard, which also holds the lock."""
        os.close(self.descriptor)


def path_of() -> Path:
    """Returns the file's path."""
    return state_dir() / _NAME


def find() -> tuple[DevRecord | None, str]:
    """Returns the cluster that runs on this host; otherwise None, and a sentence if one left its file behind.

    A file that was left behind is removed.
    """
    path = path_of()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None, ""
    try:
        if not _locked(descriptor, fcntl.LOCK_SH):
            return _read(descriptor, path), ""
        when = datetime.fromtimestamp(os.fstat(descriptor).st_mtime).astimezone()
        if is_file(descriptor, path):
            path.unlink()
        return None, f"The `storm-spark dev` of {when:%Y-%m-%d %H:%M} has ended."
    except OSError:
        return None, ""
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path) -> DevRecord | None:
    """Returns the file's record; None while the cluster starts."""
    from storm_on_spark.cli.client.dev_document import DevRecord
    from storm_on_spark.cluster.errors import RecordError
    from storm_on_spark.cluster.records import MAX_BYTES, decode

    content = os.pread(descriptor, MAX_BYTES + 1, 0)
    try:
        return decode(DevRecord, content, str(path))
    except RecordError:
        return None


def _locked(descriptor: int, how: Any) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
