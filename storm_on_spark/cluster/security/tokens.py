"""The cluster's secret: the tokens in a file, and the keys that are derived from them.

A file has one token a line. The first one signs; every one is accepted. So a cluster is moved to a new token without a
stop: add the new one after the old one on all hosts, then put it in front, then remove the old one. A file that has
changed is read again, nothing is restarted.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cluster.security.settings import SecuritySettings

logger = logging.getLogger(__name__)

MIN_TOKEN: Final = 16
MOST_TOKENS: Final = 8
_MAX_FILE: Final = 1 << 20
_LOOK_SECS: Final = 1.0
"""Between two looks whether the file has changed."""
_SALT: Final = b"storm-on-spark"


def read_secret_file(path: str | os.PathLike[str], what: str) -> str:
    """Returns what is in a file that only its owner may read.

    Raises:
        SetupError: it can't be read, or others can read it.
    """
    file = Path(path)
    try:
        status = file.stat()
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SetupError(f"{what} {file} can be read by others than its owner; chmod 600 {file}")
        if status.st_size > _MAX_FILE:
            raise SetupError(f"{what} {file} has {status.st_size:,} bytes; at most {_MAX_FILE:,} are allowed")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{what} {file} can't be read: {getattr(error, 'strerror', error)}") from error


def read_tokens(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Returns the tokens in a file, the one that signs first.

    Raises:
        SetupError: there is none, or a line is none.
    """
    lines = [line.strip() for line in lines_of(read_secret_file(path, "token file"))]
    tokens = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    wrong = any(len(token) < MIN_TOKEN or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token) for token in tokens)
    if not tokens or wrong:
        raise SetupError(
            f"token file {path} holds no token: at least {MIN_TOKEN} letters, digits and ._~+/=- a line; "
            "`openssl rand -hex 32` makes one"
        )
    if len(tokens) > MOST_TOKENS:
        raise SetupError(f"token file {path} holds {len(tokens)} tokens; at most {MOST_TOKENS} are allowed")
    return tokens


class Tokens:
    """The cluster's tokens. Any thread may ask.

    Args:
        tokens: the one that signs, then others that are accepted.
        path: the file to look at again; None for tokens that stay.
        clock: monotonic seconds.

    Example:
        >>> tokens = Tokens(("0123456789abcdef", "fedcba9876543210"))
        >>> tokens.first, len(tokens.all)
        ('0123456789abcdef', 2)
    """

    def __init__(
        self,
        tokens: tuple[str, ...],
        path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        #: These three change together, under the lock.
        self._tokens = tokens
        self._state = None if path is None else _state(path)
        self._look_at = clock() + _LOOK_SECS

    def __repr__(self) -> str:
        return f"Tokens({'fixed' if self._path is None else str(self._path)!r})"

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], clock: Callable[[], float] = time.monotonic) -> Tokens:
        """Returns the tokens in a file, which is read again when it has changed.

        Raises:
            SetupError: there is none that could be used.
        """
        return cls(read_tokens(path), Path(path), clock)

    @classmethod
    def of(cls, settings: SecuritySettings) -> Tokens | None:
        """Returns the tokens of a configuration; None if it names no file.

        Raises:
            SetupError: the file can't be used.
        """
        return None if settings.token_file is None else cls.from_file(settings.token_file)

    @property
    def first(self) -> str:
        """The token that signs."""
        return self.all[0]

    @property
    def all(self) -> tuple[str, ...]:
        """Every token that is accepted."""
        if self._path is not None and self._clock() >= self._look_at:
            self._look(self._path)
        return self._tokens

    def _look(self, path: Path) -> None:
        with self._lock:
            self._look_at = self._clock() + _LOOK_SECS
            state = _state(path)
            if state == self._state:
                return
            self._state = state
            try:
                tokens = read_tokens(path)
            except SetupError as error:
                logger.error("The tokens stay those that were read before: %s", error)
                return
            if tokens != self._tokens:
                self._tokens = tokens
                logger.info("Token file %s has changed: it holds %d now", path, len(tokens))


def derived(token: str, purpose: str) -> bytes:
    """Returns a token's key for one purpose: what is signed for one can't be used for another.

    HKDF with SHA-256 (RFC 5869), one block.

    Example:
        >>> len(derived("0123456789abcdef", "records")), derived("0123456789abcdef", "a") == derived("0" * 16, "a")
        (32, False)
    """
    return _derived(token, purpose)


@functools.lru_cache(maxsize=64)
def _derived(token: str, purpose: str) -> bytes:
    extracted = hmac.digest(_SALT, token.encode(), "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def mac(key: bytes, *parts: str | bytes) -> str:
    """Returns the HMAC-SHA256 of parts, in hexadecimal digits; where one part ends and the next begins counts.

    Example:
        >>> mac(b"k", "ab", "c") == mac(b"k", "a", "bc")
        False
    """
    found = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big"))
        found.update(data)
    return found.hexdigest()


def _state(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
