"""Who may ask: a token that all of a cluster share, and users with passwords by HTTP Digest (RFC 7616).

Without either only this host may ask, and then a browser's requests for other sites' pages are refused: a web page
could otherwise have its visitor's browser kill topologies (by a form, or by a name that resolves to this host).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import AuthenticationError

REALM: Final = "storm-on-spark"
MIN_TOKEN: Final = 16
_MAX_FILE: Final = 1 << 20
_NONCE_SECS: Final = 300.0
_MAX_NONCES: Final = 10_000
_PARAMETER = re.compile(r'([a-z]+)=(?:"([^"\\]*)"|([^\s,"]+))(?:,|$)\s*', re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Returns whether only this host can reach an address.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "nimbus-1", "")]
        [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


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


def read_token(path: str | os.PathLike[str]) -> str:
    """Returns the token in a file.

    Raises:
        SetupError: there is none that could be used.
    """
    token = read_secret_file(path, "token file").strip()
    if len(token) < MIN_TOKEN or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise SetupError(
            f"token file {path} holds no token: at least {MIN_TOKEN} letters, digits and ._~+/=-; "
            "`openssl rand -hex 32` makes one"
        )
    return token


def read_users(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns user -> SHA-256 of `user:realm:password`, of a file with lines `user:realm:<that>`.

    Raises:
        SetupError: a line is something else.
    """
    users = {}
    for number, line in enumerate(read_secret_file(path, "digest file").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, rest = line.partition(":")
        realm, _, digest = rest.strip().partition(":")
        if not user or realm != REALM or not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise SetupError(
                f"digest file {path}, line {number}: expected user:{REALM}:<SHA-256 of user:{REALM}:password in "
                "hexadecimal digits>"
            )
        users[user] = digest
    return users


class Authentication:
    """Decides who may ask.

    Args:
        token: what daemons and command lines send; None if there is none.
        users: of `read_users`.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        token: str | None = None,
        users: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._users = dict(users or {})
        self._now = now
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        #: Nonce -> counts that were used; changes under the lock.
        self._used: dict[str, set[int]] = {}

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> Authentication:
        """Returns what the configuration asks for.

        Raises:
            SetupError: a file can't be used, or there are users but no token, which daemons need.
        """
        token_file, digest_file = conf.get("nimbus.auth.token.file"), conf.get("nimbus.auth.digest.file")
        if digest_file is not None and token_file is None:
            raise SetupError("nimbus.auth.digest.file needs nimbus.auth.token.file too: daemons use the token")
        return cls(
            None if token_file is None else read_token(token_file),
            None if digest_file is None else read_users(digest_file),
        )

    @property
    def required(self) -> bool:
        """Whether anybody has to say who they are."""
        return self._token is not None or bool(self._users)

    @property
    def headers(self) -> dict[str, str]:
        """What a daemon of this cluster sends to another."""
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def check_bind(self, host: str) -> None:
        """Refuses an address that others can reach, if anybody may ask.

        Raises:
            SetupError: so it is.
        """
        if not self.required and not is_loopback(host):
            raise SetupError(
                f"nimbus.bind.address {host!r} can be reached from other hosts: set nimbus.auth.token.file, or bind to "
                "127.0.0.1"
            )

    def check(self, headers: Mapping[str, str], method: str, target: str) -> str:
        """Returns who asks; empty if nobody has to say.

        Args:
            headers: of the request; names in lower case.
            method: of the request.
            target: path and query of the request, as they were sent.

        Raises:
            AuthenticationError: nobody who may.
        """
        if not self.required:
            self._check_local(headers)
            return ""
        kind, _, rest = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._token is not None:
            if hmac.compare_digest(rest.strip().encode(), self._token.encode()):
                return "token"
            raise AuthenticationError("the token is not this cluster's")
        if kind.lower() == "digest" and self._users:
            return self._check_digest(_parameters(rest), method, target)
        ways = "the cluster's token" + (", or a user's name and password" if self._users else "")
        raise AuthenticationError(f"say who you are: send {ways}")

    def challenges(self, stale: bool = False) -> list[str]:
        """Returns values of `WWW-Authenticate` for who was refused."""
        found = []
        if self._users:
            stamp = f"{int(self._now())}.{secrets.token_hex(8)}"
            nonce = f"{stamp}.{self._signed(stamp)}"
            state = ", stale=true" if stale else ""
            found.append(f'Digest realm="{REALM}", qop="auth", algorithm=SHA-256, nonce="{nonce}"{state}')
        if self._token is not None:
            found.append(f'Bearer realm="{REALM}"')
        return found

    def _check_local(self, headers: Mapping[str, str]) -> None:
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if not is_loopback(host):
            raise AuthenticationError(f"without authentication only this host is served, not {host[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            raise AuthenticationError(f"requests of pages of other sites are refused: {origin[:80]!r}")

    def _check_digest(self, given: Mapping[str, str], method: str, target: str) -> str:
        user, nonce, count = given.get("username", ""), given.get("nonce", ""), given.get("nc", "")
        known = self._users.get(user, "")
        asked = _hashed(f"{method}:{given.get('uri', '')}")
        expected = _hashed(":".join([known, nonce, count, given.get("cnonce", ""), given.get("qop", ""), asked]))
        fits = given.get("uri") == target and given.get("qop") == "auth" and re.fullmatch(r"[0-9a-fA-F]{8}", count)
        if not known or not fits or not hmac.compare_digest(expected, given.get("response", "").lower()):
            raise AuthenticationError("user or password is wrong")
        stamp, _, signature = nonce.rpartition(".")
        if not hmac.compare_digest(signature, self._signed(stamp)) or not self._first_use(nonce, stamp, int(count, 16)):
            raise StaleNonceError("the nonce is too old, or was used before")
        return user

    def _first_use(self, nonce: str, stamp: str, count: int) -> bool:
        now = self._now()
        if now - float(stamp.partition(".")[0]) > _NONCE_SECS:
            return False
        with self._lock:
            if len(self._used) >= _MAX_NONCES:
                fresh = (n for n in self._used if now - float(n.partition(".")[0]) <= _NONCE_SECS)
                self._used = {n: self._used[n] for n in fresh}
            used = self._used.setdefault(nonce, set())
            if count in used or len(self._used) > _MAX_NONCES:
                return False
            used.add(count)
        return True

    def _signed(self, stamp: str) -> str:
        return hmac.new(self._secret, stamp.encode(), hashlib.sha256).hexdigest()


class StaleNonceError(AuthenticationError):
    """The answer is right, but to an old question: the client asks for a new one by itself."""


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _parameters(text: str) -> dict[str, str]:
    return {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(text[:4096])}
