"""A login over Thrift, as Storm's `DigestSaslTransportPlugin` has it: bytes in, bytes out; no I/O.

    client                                server
    START "DIGEST-MD5", OK ""       ->
                                    <-    OK challenge
    OK answer                       ->
                                    <-    COMPLETE rspauth, or BAD and why

A message has a byte of status, four bytes of length and the payload. Calls follow, as frames. There is no security
layer: what is sent after the login is neither encrypted nor signed.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.frames import LoginError
from storm_on_spark.cluster.security import digest
from storm_on_spark.cluster.security.digest import THRIFT
from storm_on_spark.cluster.security.jaas import USER, read_jaas
from storm_on_spark.cluster.thrift.settings import ThriftSettings

MECHANISM: Final = "DIGEST-MD5"
SECTION: Final = "StormServer"
SIMPLE: Final = "org.apache.storm.security.auth.SimpleTransportPlugin"
DIGEST: Final = "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin"
_HEAD: Final = struct.Struct("!Bi")
_MOST_BYTES: Final = 4096
"""Of a payload: the longest answer to a challenge has fewer."""


class Status(IntEnum):
    """The status byte of a login's message."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


def message(status: Status, payload: bytes = b"") -> bytes:
    r"""Returns a message of a login.

    Example:
        >>> message(Status.START, b"DIGEST-MD5")
        b'\x01\x00\x00\x00\nDIGEST-MD5'
    """
    return _HEAD.pack(status, len(payload)) + payload


def login_users(settings: ThriftSettings) -> dict[str, str] | None:
    """Returns user -> password where the transport is `DigestSaslTransportPlugin`; None where it has no login.

    Raises:
        SetupError: the transport is another one, or the JAAS file has no users for it.
    """
    plugin = settings.transport or settings.any_transport
    if plugin == SIMPLE:
        return None
    key = Config.STORM_THRIFT_TRANSPORT_PLUGIN if settings.transport is None else Config.NIMBUS_THRIFT_TRANSPORT_PLUGIN
    if plugin != DIGEST:
        raise SetupError(f"{key}: {plugin!r:.200} is not supported; a Nimbus has {SIMPLE} and {DIGEST}")
    if settings.jaas_file is None:
        raise SetupError(f"{key}: {DIGEST} needs {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG}, the path of a JAAS file")
    section = read_jaas(settings.jaas_file).get(SECTION, {})
    found = {name.removeprefix(USER): password for name, password in section.items() if name.startswith(USER)}
    if not found or not all(name and password for name, password in found.items()):
        raise SetupError(
            f'{settings.jaas_file}: {DIGEST} needs a section {SECTION} with {USER}NAME="PASSWORD" for each user'
        )
    return found


class DigestLogin:
    """The server's side of a login, on one connection.

    Args:
        users: their passwords.

    Example:
        >>> login = DigestLogin({"ann": "pw"})
        >>> login.feed(message(Status.START, b"DIGEST-MD5")), login.user
        (b'', None)
        >>> login.feed(message(Status.OK))[5:].decode()[:18]
        'realm="localhost",'
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._bytes = bytearray()
        self._started = False
        self._nonce: str | None = None
        self.user: str | None = None

    @property
    def rest(self) -> bytes:
        """What came after the login."""
        return bytes(self._bytes)

    def feed(self, data: bytes) -> bytes:
        """Takes bytes and returns what to answer; `user` is set at the end of the login.

        Raises:
            LoginError: it is not a login, or a wrong one.
        """
        self._bytes += data
        answers = b""
        while self.user is None and len(self._bytes) >= _HEAD.size:
            status, length = _HEAD.unpack_from(self._bytes)
            if not 0 <= length <= _MOST_BYTES:
                raise _bad(f"a message of a login has 0 to {_MOST_BYTES:,} bytes, and this one {length:,}")
            end = _HEAD.size + length
            if len(self._bytes) < end:
                break
            payload = bytes(self._bytes[_HEAD.size : end])
            del self._bytes[:end]
            answers += self._take(status, payload)
        return answers

    def _take(self, status: int, payload: bytes) -> bytes:
        if not self._started:
            if status != Status.START or payload != MECHANISM.encode():
                mechanism = payload[:40].decode("ascii", "backslashreplace")
                raise _bad(f"a login begins with the mechanism {MECHANISM}, not {mechanism!r} (status {status})")
            self._started = True
            return b""
        if status != Status.OK:
            raise _bad(f"status {status} instead of {int(Status.OK)} in the middle of a login")
        if self._nonce is None:
            if payload:
                raise _bad("the client answers before it is asked: each login needs a new challenge")
            self._nonce = digest.new_nonce()
            return message(Status.OK, digest.challenge(self._nonce, THRIFT))
        try:
            answer = digest.read_answer(payload, self._nonce, THRIFT)
        except AuthenticationError as error:
            raise _bad(str(error)) from error
        # An unknown user costs what a wrong password does.
        last = digest.verify(answer, self._users.get(answer.name, secrets.token_hex()))
        if last is None:
            raise _bad(f"user or password is wrong (user {answer.name!r:.80})", "user or password is wrong")
        self.user = answer.name
        return message(Status.COMPLETE, last)


def _bad(why: str, told: str | None = None) -> LoginError:
    return LoginError(f"login refused: {why}", message(Status.BAD, (why if told is None else told).encode()))
