"""Folders of this machine's user: caches, logs, temporary files. XDG's environment variables are honoured."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from storm_on_spark.spark.session.folders.owned import PREFIX, make_owned, remove_abandoned

_NAME = PREFIX
SHORT_TEMPORARY = "/tmp"  # noqa: S108 # every path below it is short enough for a socket
_SOCKET_PATH_BYTES = 103
"""The longest path of a Unix socket: 107 bytes on Linux, 103 on macOS."""
_SOCKET_NAME_BYTES = len("/.") + 36 + len(".sock")
"""How Spark names its sockets: by a UUID. Ours have shorter names."""


def cache_dir() -> Path:
    """Returns the folder for caches, which can be fetched again."""
    return _base("XDG_CACHE_HOME", ".cache") / _NAME


def state_dir() -> Path:
    """Returns the folder for logs, which are kept and belong to no project."""
    return _base("XDG_STATE_HOME", ".local/state") / _NAME


def writable_dir(path: Path) -> bool:
    """Makes the folder `path`, for its owner only; returns whether files can be created there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK)


def own_dir(path: Path) -> bool:
    """Makes `path` in a folder where others may write, and returns whether only this user has access.

    In a shared temporary folder, another user may create a folder or a link with a predictable name first. A link, or a
    folder of another user, is left alone. If our own folder is open to others, their access is removed.
    """
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            return False
        if stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(descriptor, 0o700)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def session_scratch() -> Path:
    """Makes the folder for one session's temporary files, and removes those whose owner is gone.

    Spark removes its own files when it stops; after SIGKILL nobody does, so the next session cleans up. The folder is
    this process' until `owned.remove_owned`.
    """
    remove_scratch_of_the_dead()
    return make_owned()


def remove_scratch_of_the_dead() -> None:
    """Removes the temporary files of sessions and topologies whose process is gone."""
    remove_abandoned({Path(tempfile.gettempdir()), Path(SHORT_TEMPORARY)})


def fits_sockets(folder: Path) -> bool:
    """Returns whether the path of `folder` is short enough for sockets in it."""
    return len(os.fsencode(folder)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES


def socket_folder() -> Path:
    """Makes a folder for Unix sockets, which only its owner can enter; `owned.remove_owned` removes it.

    It is a temporary one, in `/tmp` where the path of the temporary folder is too long for sockets.
    """
    fits = fits_sockets(Path(tempfile.gettempdir(), f"{PREFIX}-{os.getpid()}-12345678"))
    return make_owned(None if fits else Path(SHORT_TEMPORARY))


def _base(variable: str, default: str) -> Path:
    # The specification says that a relative path is to be ignored.
    value = os.environ.get(variable, "")
    return Path(value) if Path(value).is_absolute() else Path.home() / default
