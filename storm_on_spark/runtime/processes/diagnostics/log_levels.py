"""Levels of loggers that change while a topology runs, in every process of it.

The driver writes a file. The processes that it starts, directly or through Spark, know the path from their environment.
Long-lived processes read it on a thread; a worker of Spark reads it before each task. Processes on other machines read
levels from the checkpoint, where they look whether tuples are sampled. Each process remembers the former level of a
logger, and restores it when nothing names the logger any longer.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storm_on_spark.api.text.logs import ComponentHandler

VARIABLE: Final = "STORM_SPARK_LOG_LEVELS"
"""Variable of the environment: path of the file."""
ROOT: Final = "ROOT"
"""Storm's name of the logger that all others inherit from."""
LEVELS: Final[Mapping[str, int]] = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": 100,
}
"""Storm's (log4j's) levels -> Python's."""
_LOOK_SECS: Final = 0.5
_MOST_BYTES: Final = 1 << 16


class LogLevels:
    """Changes levels in this process, and can change them back.

    Example:
        >>> levels, logger = LogLevels(), logging.getLogger("an.example")
        >>> logger.setLevel(logging.ERROR)
        >>> levels.apply({"an.example": "DEBUG"})
        >>> logger.level == logging.DEBUG
        True
        >>> levels.apply({})
        >>> logger.level == logging.ERROR
        True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: dict[str, str] = {}
        #: Logger -> its level before the first change.
        self._former: dict[str, int] = {}
        self._handler = ComponentHandler()
        self._handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def apply(self, wanted: Mapping[str, str]) -> None:
        """Gives loggers these levels. Loggers that were changed before and are not named get their former levels back.

        Args:
            wanted: logger -> one of `LEVELS`.
        """
        with self._lock:
            for name in self._former.keys() - wanted.keys():
                _logger(name).setLevel(self._former.pop(name))
            for name, level in wanted.items():
                logger = _logger(name)
                self._former.setdefault(name, logger.level)
                logger.setLevel(LEVELS[level])
            self._now = dict(wanted)
        root = logging.getLogger()
        if wanted and self._handler not in root.handlers:
            # Python shows nothing below WARNING of a logger without a handler.
            root.addHandler(self._handler)
        elif not wanted:
            root.removeHandler(self._handler)

    @property
    def now(self) -> dict[str, str]:
        """The levels that were applied last."""
        return dict(self._now)


class Published:
    """Levels for all processes of a topology: applied here, and written for the others.

    Args:
        path: of the file; its folder belongs to this user alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._here = LogLevels()
        self._written: dict[str, str] | None = None

    def set(self, wanted: Mapping[str, str]) -> bool:
        """Sets levels; returns whether anything changed.

        Raises:
            OSError: the file can't be written.
        """
        if wanted == self._written or (self._written is None and not wanted):
            return False
        temporary = self._path.with_name(self._path.name + ".tmp")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(dict(wanted), file)
        temporary.replace(self._path)
        self._here.apply(wanted)
        self._written = dict(wanted)
        return True


class _Follower:
    """Reads the file when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._levels = LogLevels()

    def look(self) -> None:
        try:
            found = self._path.stat()
        except OSError:
            return
        seen = found.st_mtime_ns, found.st_ino
        if seen == self._seen:
            return
        self._seen = seen
        # Such a file could only change how much a topology logs, but other users have no business to do that.
        if found.st_uid != os.getuid() or found.st_mode & 0o022 or not stat.S_ISREG(found.st_mode):
            return
        try:
            with self._path.open("rb") as file:
                self._levels.apply(read_levels(file.read(_MOST_BYTES)))
        except (OSError, ValueError):
            # It is replaced as a whole, so the next one is right.
            return

    def run(self) -> None:
        pause = threading.Event()
        while not pause.wait(_LOOK_SECS):
            self.look()


def read_levels(data: bytes) -> dict[str, str]:
    """Returns what the file says: logger -> level.

    Raises:
        ValueError: it is no such file.

    Example:
        >>> read_levels(b'{"my.bolt": "DEBUG"}')
        {'my.bolt': 'DEBUG'}
    """
    return checked_levels(json.loads(data))


def checked_levels(found: object) -> dict[str, str]:
    """Returns logger -> level.

    Raises:
        ValueError: that is something else.

    Example:
        >>> checked_levels({"my.bolt": "LOUD"})
        Traceback (most recent call last):
        ...
        ValueError: levels of loggers: expected an object, logger -> level
    """
    if not isinstance(found, dict) or not all(isinstance(level, str) and level in LEVELS for level in found.values()):
        raise ValueError("levels of loggers: expected an object, logger -> level")
    return found


_follower: _Follower | None = None


def look() -> None:
    """Reads the file once; for processes that fork. Does nothing if no driver has named one."""
    global _follower  # one for each process, and for its forks
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    if _follower is None:
        _follower = _Follower(Path(path))
    _follower.look()


def follow() -> None:
    """Reads the file now and whenever it changes, on a thread that ends with the process."""
    look()
    if _follower is not None:
        threading.Thread(target=_follower.run, name="log-levels", daemon=True).start()


_learned: LogLevels | None = None


def learn(wanted: Mapping[str, str]) -> None:
    """Gives loggers these levels in a process that no file reaches, as it is on another machine than the driver.

    Args:
        wanted: logger -> one of `LEVELS`.
    """
    global _learned  # one for each process
    if VARIABLE in os.environ or not (wanted or _learned):
        return
    if _learned is None:
        _learned = LogLevels()
    if wanted != _learned.now:
        _learned.apply(wanted)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)
