"""Where files of this machine's user go: caches, logs, temporary files. XDG's environment variables count."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from storm_on_spark.runtime.processes import is_on_a_command_line, started_at

_NAME = "storm-on-spark"
_SHORT_TEMPORARY = "/tmp"  # noqa: S108 # every path below it is short enough for a socket
_SOCKET_PATH_BYTES = 103
"""The longest path of a Unix socket: 107 bytes on Linux, 103 on macOS."""
_SOCKET_NAME_BYTES = len("/.") + 36 + len(".sock")
"""How Spark names its sockets: by a UUID. Ours have shorter names."""


def cache_dir() -> Path:
    """Returns the folder for what can be fetched again."""
    return _base("XDG_CACHE_HOME", ".cache") / _NAME


def state_dir() -> Path:
    """Returns the folder for what should last but belongs to nobody's project: logs."""
    return _base("XDG_STATE_HOME", ".local/state") / _NAME


def writable_dir(path: Path) -> bool:
    """Makes `path`, with access for its owner only, and returns whether files can be put there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK)


def session_scratch() -> Path:
    """Makes the folder for one session's temporary files, and removes those whose process is gone.

    Spark removes its own files when it stops; after SIGKILL nobody does, so the next session cleans up.
    """
    remove_scratch_of_the_dead()
    return Path(tempfile.mkdtemp(prefix=f"{_NAME}-{os.getpid()}-"))


def remove_scratch_of_the_dead() -> None:
    """Removes what sessions have left whose process is gone."""
    for root in {Path(tempfile.gettempdir()), Path(_SHORT_TEMPORARY)}:
        for left in root.glob(f"{_NAME}-*"):
            owner = re.fullmatch(rf"{_NAME}-(\d+)-\w+", left.name)
            # A process that has ended and that nobody has asked for yet is gone, too. Its JVM may be about to start: it
            # ends by itself when it sees that nobody is there, but not if it finds nothing where it is to write first.
            if owner and started_at(int(owner[1])) is None and not is_on_a_command_line(left):
                shutil.rmtree(left, ignore_errors=True)


def fits_sockets(folder: Path) -> bool:
    """Returns whether the path of `folder` is short enough for sockets in it."""
    return len(os.fsencode(folder)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES


def socket_folder() -> Path:
    """Makes a folder for Unix sockets, which only its owner can enter.

    It is a temporary one, in `/tmp` where the path of the temporary folder is too long for sockets.
    """
    prefix = f"{_NAME}-{os.getpid()}-"
    fits = fits_sockets(Path(tempfile.gettempdir(), f"{prefix}12345678"))
    return Path(tempfile.mkdtemp(prefix=prefix, dir=None if fits else _SHORT_TEMPORARY))


def _base(variable: str, default: str) -> Path:
    # The specification says that a relative path is to be ignored.
    value = os.environ.get(variable, "")
    return Path(value) if Path(value).is_absolute() else Path.home() / default
