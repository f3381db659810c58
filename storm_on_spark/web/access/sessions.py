"""Sessions of browsers, and the codes that begin them. Pure: times in, no I/O.

A code in a link logs in one browser, once, and is exchanged for a cookie; so what stays in the browser's history is of
no use to anybody.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["reader", "owner", "operator"]
"""A reader sees everything, and an operator may also change it; for an owner it depends on the topology."""

_MOST_SESSIONS: Final = 1000
_MOST_CODES: Final = 100
_SESSION_SECS: Final = 7 * 86400.0
_FAILURES: Final = 20
_FAILURE_SECS: Final = 60.0


@dataclass(frozen=True)
class Session:
    """A browser that has logged in."""

    name: str
    """Who it is, as the list of changes shows it."""
    role: Role
    until: float
    """Seconds, of the clock of `Sessions`."""
    csrf: str
    """Stands in every form; a page of another site can't know it."""


class Sessions:
    """The sessions of one server. Any thread may call it.

    Args:
        now: seconds; only differences count.

    Example:
        >>> sessions = Sessions()
        >>> code = sessions.new_code("operator", "ada")
        >>> cookie = sessions.redeem(code)
        >>> sessions.find(cookie).name, sessions.redeem(code), sessions.find("guess")
        ('ada', None, None)
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        #: By the hash of the cookie, so that no comparison tells how much of a guess is right; oldest use first.
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        #: By the hash of the code: role, name and end.
        self._codes: OrderedDict[bytes, tuple[Role, str, float]] = OrderedDict()
        #: When logins failed, oldest first.
        self._failures: list[float] = []

    def new_code(self, role: Role, name: str, secs: float = _SESSION_SECS) -> str:
        """Returns a code that begins one session.

        Args:
            role: of the session.
            name: who it is.
            secs: how long the code can be used.
        """
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes[_hashed(code)] = role, name, self._now() + secs
            while len(self._codes) > _MOST_CODES:
                self._codes.popitem(last=False)
        return code

    def redeem(self, code: str) -> str | None:
        """Returns the cookie of a new session; None for a code that is unknown, used or too old."""
        with self._lock:
            found = self._codes.pop(_hashed(code), None)
        if found is None or found[2] < self._now():
            return None
        return self.begin(found[0], found[1])

    def begin(self, role: Role, name: str) -> str:
        """Begins a session and returns its cookie."""
        cookie = secrets.token_urlsafe(32)
        session = Session(name, role, self._now() + _SESSION_SECS, secrets.token_urlsafe(24))
        with self._lock:
            self._sessions[_hashed(cookie)] = session
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Returns the session of a cookie; None without one."""
        key = _hashed(cookie)
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if session.until < self._now():
                del self._sessions[key]
                return None
            self._sessions.move_to_end(key)
            return session

    def end(self, cookie: str) -> None:
        """Ends a session."""
        with self._lock:
            self._sessions.pop(_hashed(cookie), None)

    def may_try(self) -> bool:
        """Whether a login may be tried: not after many failures within a minute."""
        with self._lock:
            now = self._now()
            self._failures = [moment for moment in self._failures if now - moment < _FAILURE_SECS]
            return len(self._failures) < _FAILURES

    def failed(self) -> None:
        """Notes that a login failed."""
        with self._lock:
            self._failures.append(self._now())


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal; the time it takes says nothing of them."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
