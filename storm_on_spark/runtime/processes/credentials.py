"""Credentials of a topology, in every process of it on one machine.

The driver writes a file that only its user may read. The processes that it starts, directly or through Spark, know the
path from their environment. The thread of a component that listens checks for a change of the file before it calls the
component, at most twice a second. So nothing is handed over between threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.task.credentials import Credentials, ICredentialsListener

VARIABLE: Final = "STORM_SPARK_CREDENTIALS"
"""Variable of the environment: path of the file."""
NONE: Final = Credentials()
_LOOK_SECS: Final = 0.5
_MOST_BYTES: Final = 1 << 20
_MOST_KNOWN: Final = 10_000
_LEAST_SECRET: Final = 6
"""The fewest characters of a value that is replaced in texts; a shorter one would be found in any text."""


class Published:
    """The file on the side of the driver, which writes it.

    Args:
        path: of the file; its folder belongs to this user alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: Mapping[str, str] = NONE

    def set(self, wanted: Mapping[str, str]) -> bool:
        """Makes these the credentials; returns whether anything changed.

        Raises:
            OSError: the file can't be written.
        """
        if wanted == self._written:
            return False
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(dict(wanted), file)
        temporary.replace(self._path)
        self._written = dict(wanted)
        return True

    def remove(self) -> None:
        """Removes the file, when nothing is left that may need it."""
        with contextlib.suppress(OSError):  # nothing may keep a driver from ending
            self._path.unlink()


class Known:
    """The credentials that this process knows. Any thread may read them.

    Args:
        path: of the file; None if no driver has named one.
        clock: monotonic seconds.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        #: These change together, under the lock.
        self._now = NONE
        self._seen: tuple[int, int, int] | None = None
        self._look_at = float("-inf")
        self._secrets: dict[str, None] = {}

    def now(self) -> Credentials:
        """Returns the present credentials: the same object until they change."""
        if self._path is None:
            return NONE
        with self._lock:
            if self._clock() >= self._look_at:
                self._look(self._path)
                self._look_at = self._clock() + _LOOK_SECS
            return self._now

    def holds_secret(self, value: object) -> bool:
        """Returns whether a value is a credential, present or former, or a dict that has one among its values."""
        if not self._secrets:
            return False
        if isinstance(value, str):
            return value in self._secrets
        return isinstance(value, dict) and any(isinstance(v, str) and v in self._secrets for v in value.values())

    def redacted(self, text: str) -> str:
        """Returns a text in which `<credential>` replaces each credential."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "<credential>")
        return text

    def _look(self, path: Path) -> None:
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return  # none were pushed
        with os.fdopen(file, "rb") as opened:
            status = os.fstat(file)
            seen = status.st_mtime_ns, status.st_ino, status.st_size
            if seen == self._seen:
                return
            self._seen = seen
            # Another user's credentials would make components send this topology's data to that user's account.
            if status.st_uid != os.getuid() or status.st_mode & 0o077 or not stat.S_ISREG(status.st_mode):
                return
            try:
                found = read_credentials(opened.read(_MOST_BYTES))
            except (OSError, ValueError):
                return  # it is replaced as a whole, so the next one is right
        for value in found.values():
            if len(value) >= _LEAST_SECRET and len(self._secrets) < _MOST_KNOWN:
                self._secrets[value] = None
        if found != self._now:
            self._now = Credentials(found)


def read_credentials(data: bytes) -> dict[str, str]:
    """Returns what the file says: name -> secret.

    Raises:
        ValueError: it is no such file; the error shows nothing of it.

    Example:
        >>> read_credentials(b'{"token": "s3cret"}')
        {'token': 's3cret'}
    """
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError("credentials: expected an object, name -> text")
    return found


_known: Known | None = None
set_with_credentials: Final[dict[type, set[str]]] = {}
#: Class of a listener -> attributes that its `set_credentials` has assigned.


def known() -> Known:
    """Returns the credentials of this process; a fork begins with those of its parent."""
    global _known  # one for each process
    if _known is None:
        path = os.environ.get(VARIABLE)
        _known = Known(None if path is None else Path(path))
    return _known


class Listening:
    """Gives a component the credentials, if it listens. Only the component's thread may use it.

    Args:
        instance: the spout or bolt, before `open` or `prepare`; it gets the present ones at once. A bolt inside of a
            windowed bolt, or of a front end's, gets them too.
        component: id of the component.
        task: its task.

    Raises:
        ComponentError: `set_credentials` raised.
    """

    def __init__(self, instance: object, component: str, task: int) -> None:
        holder = getattr(instance, "state_holder", None)
        self._listener = next((each for each in (instance, holder) if isinstance(each, ICredentialsListener)), None)
        self._component, self._task = component, task
        #: The credentials that the component got last.
        self._given: Credentials | None = None
        self.give()

    def give(self, *, again: bool = False) -> None:
        """Gives the component the credentials if they have changed.

        Args:
            again: give them even if they haven't changed, since the component's attributes were replaced.

        Raises:
            ComponentError: `set_credentials` raised.
        """
        if self._listener is None:
            return
        now = known().now()
        if now is self._given and not again:
            return
        self._given = now
        attributes = getattr(self._listener, "__dict__", {})
        before = dict(attributes)
        try:
            self._listener.set_credentials(now)
        except (Exception, SystemExit) as error:
            self._refuse(error)
        assigned = {name for name, value in attributes.items() if value is not before.get(name, before)}
        set_with_credentials.setdefault(type(self._listener), set()).update(assigned)

    def _refuse(self, error: BaseException) -> NoReturn:
        found, clean = ComponentError.of(self._component, self._task, "set_credentials", error), known().redacted
        # Not `from error`: its text may show a credential.
        raise ComponentError(
            self._component,
            self._task,
            found.phase,
            clean(found.message),
            clean(found.cause_text),
            clean(found.own_trace),
        ) from None
