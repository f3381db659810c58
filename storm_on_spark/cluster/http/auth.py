"""Authentication: by the token that a cluster shares, or by user and password with HTTP Digest (RFC 7616).

What belongs to the cluster proves each request with the token and never sends it: see `security.proofs`. A person may
send it (`Authorization: Bearer ...`), over a connection on which nobody can listen.

Without either only this host may ask, and then a browser's requests for other sites' pages are refused: a web page
could otherwise have its visitor's browser kill topologies (by a form, or by a name that resolves to this host).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.security.addresses import asked_host, is_loopback
from storm_on_spark.cluster.security.proofs import SCHEME, UNSIGNED, challenge_header, parameters, proof
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tokens import Tokens, read_secret_file

REALM: Final = "storm-on-spark"
_NONCE_SECS: Final = 300.0
_MAX_NONCES: Final = 10_000


def read_users(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns user -> SHA-256 of `user:realm:password`, of a file with lines `user:realm:<that>`.

    Raises:
        SetupError: a line is something else.
    """
    users = {}
    for number, line in enumerate(lines_of(read_secret_file(path, "digest file")), 1):
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


@dataclass(frozen=True)
class Caller:
    """The authenticated sender of a request; `body` is the SHA-256 that its body must have, None for any."""

    name: str
    body: str | None = None
    may_change: bool = True
    """Whether it may send anything but reads."""
    trusted: bool = False
    """Whether it has the cluster's token, or the cluster needs none."""


class Authentication:
    """Authenticates requests.

    Args:
        tokens: the cluster's, or one; None if there is none.
        users: of `read_users`.
        now: seconds since the epoch.
        admins: the users who may change something; all for None.
        by_operation: whether the application decides that for each operation.
    """

    def __init__(
        self,
        tokens: Tokens | str | None = None,
        users: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        admins: Collection[str] | None = None,
        *,
        by_operation: bool = False,
    ) -> None:
        self._tokens = Tokens((tokens,)) if isinstance(tokens, str) else tokens
        self._users = dict(users or {})
        self._now = now
        self._admins = admins
        self._by_operation = by_operation
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        #: Nonce -> counts that were used; changes under the lock.
        self._used: dict[str, set[int]] = {}

    @classmethod
    def of(
        cls, settings: SecuritySettings, tokens: Tokens | None = None, *, by_operation: bool = False
    ) -> Authentication:
        """Returns what the configuration asks for.

        Args:
            settings: the cluster's.
            tokens: those of the settings, where they were read already.
            by_operation: whether the application decides for each operation who may change something.

        Raises:
            SetupError: a file can't be used, or there are users but no token, which daemons need.
        """
        if settings.digest_file is not None and settings.token_file is None:
            raise SetupError("nimbus.auth.digest.file needs nimbus.auth.token.file too: daemons use the token")
        return cls(
            Tokens.of(settings) if tokens is None else tokens,
            None if settings.digest_file is None else read_users(settings.digest_file),
            admins=settings.admins,
            by_operation=by_operation,
        )

    @property
    def required(self) -> bool:
        """Whether requests must be authenticated."""
        return self._tokens is not None or bool(self._users)

    def check_bind(self, host: str) -> None:
        """Refuses an address that others can reach, if anybody may ask.

        Raises:
            SetupError: others can reach it and no token is set.
        """
        if not self.required and not is_loopback(host):
            raise SetupError(
                f"nimbus.bind.address {host!r} can be reached from other hosts: set nimbus.auth.token.file, or bind to "
                "127.0.0.1"
            )

    def check(self, headers: Mapping[str, str], method: str, target: str) -> str:
        """Returns the user of a request; empty if authentication is off.

        Args:
            headers: of the request; names in lower case.
            method: of the request.
            target: path and query of the request, as they were sent.

        Raises:
            AuthenticationError: the sender is unknown.
        """
        return self.caller(headers, method, target).name

    def caller(self, headers: Mapping[str, str], method: str, target: str) -> Caller:
        """Returns the user of a request and the body that it signed; see `check`.

        Raises:
            AuthenticationError: the sender is unknown.
        """
        if not self.required:
            self._check_local(headers)
            return Caller("", trusted=True)
        kind, _, rest = headers.get("authorization", "").partition(" ")
        if kind.lower() == SCHEME.lower() and self._tokens is not None:
            return self._check_proof(parameters(rest), method, target)
        if kind.lower() == "bearer" and self._tokens is not None:
            if any(hmac.compare_digest(rest.strip().encode(), token.encode()) for token in self._tokens.all):
                return Caller("token", trusted=True)
            raise AuthenticationError("the token is not this cluster's")
        if kind.lower() == "digest" and self._users:
            user = self._check_digest(parameters(rest), method, target)
            return Caller(user, may_change=self._by_operation or self.may_change(user))
        ways = "the cluster's token" + (", or a user's name and password" if self._users else "")
        raise AuthenticationError(f"say who you are: send {ways} ({Config.NIMBUS_AUTH_TOKEN_FILE}, --token-file)")

    @property
    def has_users(self) -> bool:
        """Whether users with passwords are known."""
        return bool(self._users)

    def may_change(self, user: str) -> bool:
        """Returns whether a user may change something: `nimbus.admins` says who, if it is set."""
        return self._admins is None or user in self._admins

    def knows_token(self, token: str) -> bool:
        """Returns whether a token is the cluster's."""
        known = () if self._tokens is None else self._tokens.all
        return any(hmac.compare_digest(token.encode(), each.encode()) for each in known)

    def knows_password(self, user: str, password: str) -> bool:
        """Returns whether a user has a password."""
        known = self._users.get(user, "")
        return bool(known) and hmac.compare_digest(known, _hashed(f"{user}:{REALM}:{password}"))

    def challenges(self, stale: bool = False) -> list[str]:
        """Returns values of `WWW-Authenticate` for a refused request."""
        found = []
        stamp = f"{int(self._now())}.{secrets.token_hex(8)}"
        nonce = f"{stamp}.{self._signed(stamp)}"
        if self._users:
            state = ", stale=true" if stale else ""
            found.append(f'Digest realm="{REALM}", qop="auth", algorithm=SHA-256, nonce="{nonce}"{state}')
        if self._tokens is not None:
            found.append(challenge_header(nonce))
            found.append(f'Bearer realm="{REALM}"')
        return found

    def _check_local(self, headers: Mapping[str, str]) -> None:
        host = asked_host(headers.get("host", ""))
        if not is_loopback(host):
            raise AuthenticationError(f"without authentication only this host is served, not {host[:80]!r}")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            raise AuthenticationError(f"a request must come from this server's own pages, not from {origin[:80]!r}")

    def _check_proof(self, given: Mapping[str, str], method: str, target: str) -> Caller:
        assert self._tokens is not None
        challenge, count, body = given.get("challenge", ""), given.get("nc", ""), given.get("body", "")
        if not re.fullmatch(r"[0-9a-f]{8}", count) or not re.fullmatch(rf"[0-9a-f]{{64}}|{UNSIGNED}", body):
            raise AuthenticationError(
                f"the proof is malformed: nc must be 8 hexadecimal digits and body a SHA-256 or {UNSIGNED}"
            )
        said = given.get("mac", "").encode()
        proofs = (proof(token, method, target, challenge, count, body).encode() for token in self._tokens.all)
        if not any(hmac.compare_digest(right, said) for right in proofs):
            raise AuthenticationError(
                "the token is not this cluster's: the proof was made with another one, or for another request"
            )
        self._check_nonce(challenge, count)
        if body != UNSIGNED:
            return Caller("token", body, trusted=True)
        if method != "PUT":
            # Only an upload is read while it is sent; its checksum is in the request that submits it.
            raise AuthenticationError(f"a {method} needs a proof that signs its body")
        return Caller("token", trusted=True)

    def _check_nonce(self, nonce: str, count: str) -> None:
        stamp, _, signature = nonce.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signed(stamp).encode()) or not self._first_use(
            nonce, stamp, int(count, 16)
        ):
            raise StaleNonceError("the nonce is too old, or was used before")

    def _check_digest(self, given: Mapping[str, str], method: str, target: str) -> str:
        user, nonce, count = given.get("username", ""), given.get("nonce", ""), given.get("nc", "")
        known = self._users.get(user, "")
        asked = _hashed(f"{method}:{given.get('uri', '')}")
        expected = _hashed(":".join([known, nonce, count, given.get("cnonce", ""), given.get("qop", ""), asked]))
        fits = given.get("uri") == target and given.get("qop") == "auth" and re.fullmatch(r"[0-9a-fA-F]{8}", count)
        if not known or not fits or not hmac.compare_digest(expected, given.get("response", "").lower()):
            raise AuthenticationError("user or password is wrong")
        self._check_nonce(nonce, count)
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
