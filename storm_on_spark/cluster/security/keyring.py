"""Signed records: a node in ZooKeeper counts only if its writer knew the cluster's secret.

A signed node holds an envelope as JSON:

    {"signed":1,"key":"<which token>","stamp":[<epoch>,<number>],"mac":"<HMAC-SHA256>","record":{"format":1,...}}

The signature is over kind, path, stamp and the very bytes of the record, so a record can't be changed, moved to another
path or passed off as another kind. The stamp is the leader's: its epoch, and a number that grows with each of its
writes. A reader that has read a record at a path accepts no older one there (`Stamps`).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import itertools
import os
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal

import msgspec

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cluster.errors import SignatureError
from storm_on_spark.cluster.records import MAX_BYTES, R, Record, decode, encode
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tokens import Tokens, derived, mac

Stamp = tuple[int, int]
NO_STAMP: Final[Stamp] = (0, 0)

_PREFIX: Final = b'{"signed":'
_PURPOSE: Final = "records"
_HIDING: Final = "credentials"
_NONCE_BYTES: Final = 12
_KEPT: Final = 100_000
"""Stamps that are remembered; far more than the nodes of any cluster."""


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    signed: Literal[1]
    key: str
    stamp: Stamp
    mac: str
    record: msgspec.Raw


@dataclass(frozen=True)
class Opened(Generic[R]):
    """A record that may be believed.

    `current` says whether it is as this process would write it: signed with the first token, or unsigned where nothing
    is signed.
    """

    record: R
    stamp: Stamp
    current: bool


class Keyring:
    """Signs records, and checks signatures.

    Args:
        tokens: the cluster's secret; None for a cluster without one, where nothing is signed.

    Example:
        >>> from storm_on_spark.cluster.records import LeaderInfo
        >>> keyring = Keyring(Tokens(("0123456789abcdef",)))
        >>> info = LeaderInfo(address="localhost:6627", epoch=7, since=0.0)
        >>> data = keyring.encode(info, "/storm/leader-info")
        >>> keyring.decode(LeaderInfo, data, "/storm/leader-info") == info
        True
        >>> keyring.decode(LeaderInfo, data, "/storm/elsewhere")
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.errors.SignatureError: /storm/elsewhere: the signature of this LeaderInfo is wrong: it \
was changed, or copied from elsewhere; it is left alone
    """

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens
        self._numbers = itertools.count(1)

    @classmethod
    def of(cls, settings: SecuritySettings, tokens: Tokens | None = None) -> Keyring:
        """Returns what the configuration asks for.

        Args:
            settings: the cluster's.
            tokens: those of the settings, where they were read already.

        Raises:
            SetupError: the file with the secret can't be used.
        """
        return cls(Tokens.of(settings) if tokens is None else tokens)

    @property
    def signs(self) -> bool:
        """Whether records are signed."""
        return self._tokens is not None

    @property
    def mixed(self) -> bool:
        """Whether records may count that another token than the first has signed."""
        return self._tokens is not None and len(self._tokens.all) > 1

    def stamp(self, epoch: int) -> Stamp:
        """Returns the stamp of a leader's next write."""
        return epoch, next(self._numbers)

    def encode(self, record: Record, path: str, stamp: Stamp = NO_STAMP) -> bytes:
        """Returns what a node holds for a record.

        Args:
            record: the record.
            path: of the node.
            stamp: of a leader's write.

        Raises:
            RecordError: it is too large for a node.
        """
        data = encode(record)
        return self.seal(type(record).__name__, data, path, stamp) if record.signed else data

    def seal(self, kind: str, data: bytes, path: str, stamp: Stamp = NO_STAMP) -> bytes:
        """Returns what a node holds for JSON of any kind: an envelope, where this process signs.

        Args:
            kind: of the record.
            data: the record as JSON.
            path: of the node.
            stamp: grows with each record at this path.
        """
        if self._tokens is None:
            return data
        token = self._tokens.first
        envelope = _Envelope(
            signed=1,
            key=_name(token),
            stamp=stamp,
            mac=_signature(token, kind, path, stamp, data),
            record=msgspec.Raw(data),
        )
        return msgspec.json.encode(envelope)

    def encrypt(self, data: bytes, path: str) -> tuple[str, str]:
        """Hides data from everybody who doesn't have the cluster's secret: AES-GCM with 256 bits.

        Args:
            data: what is to be kept secret.
            path: of the node that it is for; at another path it can't be decrypted.

        Returns:
            Which token it is encrypted with, and the text for a record.

        Raises:
            SetupError: the cluster has no secret, or the library is not installed.
        """
        if self._tokens is None:
            raise SetupError(
                f"this cluster has no secret to encrypt with: set {Config.NIMBUS_AUTH_TOKEN_FILE}, or start the Nimbus "
                "without --open"
            )
        token, nonce = self._tokens.first, os.urandom(_NONCE_BYTES)
        sealed = nonce + _cipher(token).encrypt(nonce, data, path.encode())
        return _name(token), base64.b64encode(sealed).decode("ascii")

    def decrypt(self, key: str, text: str, path: str) -> bytes:
        """Returns what `encrypt` has hidden.

        Raises:
            SetupError: the library is not installed.
            SignatureError: it was encrypted with a secret that isn't known here, for another path, or was changed.
        """
        token = next((each for each in (self._tokens.all if self._tokens else ()) if _name(each) == key), None)
        if token is None:
            raise SignatureError(f"{path}: it is encrypted with a secret that is not known here; it is left alone")
        cipher = _cipher(token)
        from cryptography.exceptions import InvalidTag

        try:
            sealed = base64.b64decode(text, validate=True)
            found: bytes = cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], path.encode())
        except (binascii.Error, ValueError, InvalidTag):
            raise SignatureError(f"{path}: it can't be decrypted: it was changed, or copied from elsewhere") from None
        return found

    @property
    def first_key(self) -> str | None:
        """Which token `encrypt` takes, as `encrypt` names it; None without any."""
        return None if self._tokens is None else _name(self._tokens.first)

    def decode(self, type_: type[R], data: bytes, path: str) -> R:
        """Returns the record that a node holds.

        Raises:
            SignatureError: it isn't signed as it has to be.
            RecordError: it is something else.
        """
        return self.open(type_, data, path).record

    def open(self, type_: type[R], data: bytes, path: str) -> Opened[R]:
        """Returns the record that a node holds, and how it was signed.

        Raises:
            SignatureError: it isn't signed as it has to be.
            RecordError: it is something else.
        """
        if not type_.signed:
            return Opened(decode(type_, data, path), NO_STAMP, True)
        payload, stamp, current = self.unseal(type_.__name__, data, path)
        return Opened(decode(type_, payload, path), stamp, current)

    def unseal(self, kind: str, data: bytes, path: str) -> tuple[bytes, Stamp, bool]:
        """Returns the JSON in a node of any kind, its stamp, and whether it is as this process would write it.

        Raises:
            SignatureError: it isn't signed as it has to be.
        """
        if not data.startswith(_PREFIX):
            if self._tokens is not None:
                raise SignatureError(
                    f"{path}: this {kind} is not signed with the cluster's secret; it is left alone. If a daemon "
                    f"without {Config.NIMBUS_AUTH_TOKEN_FILE} wrote it, remove it and submit or create again what it "
                    "is about"
                )
            return data, NO_STAMP, True
        envelope = _envelope(kind, data, path)
        payload = bytes(envelope.record)
        if self._tokens is None:
            return payload, envelope.stamp, False
        known = {_name(token): token for token in reversed(self._tokens.all)}
        token = known.get(envelope.key)
        if token is None:
            raise SignatureError(
                f"{path}: this {kind} is signed with a secret that is not in "
                f"{Config.NIMBUS_AUTH_TOKEN_FILE} here; it is left alone"
            )
        right = _signature(token, kind, path, envelope.stamp, payload)
        if not hmac.compare_digest(right.encode(), envelope.mac.encode()):
            raise SignatureError(
                f"{path}: the signature of this {kind} is wrong: it was changed, or copied from elsewhere; "
                "it is left alone"
            )
        return payload, envelope.stamp, token == self._tokens.first


class Stamps:
    """The newest stamp that was seen at each path: an older record that appears there later was copied."""

    def __init__(self) -> None:
        self._seen: dict[str, Stamp] = {}

    def check(self, path: str, kind: str, stamp: Stamp) -> None:
        """Notes a stamp; a record that isn't signed has none.

        Raises:
            SignatureError: a newer one was seen there.
        """
        if stamp == NO_STAMP:
            return
        seen = self._seen.pop(path, NO_STAMP)
        # Last in the order, so that what goes first was not looked at for the longest time.
        self._seen[path] = max(seen, stamp)
        if len(self._seen) > _KEPT:
            del self._seen[next(iter(self._seen))]
        if stamp < seen:
            raise SignatureError(
                f"{path}: this {kind} is older than one that was there before (stamp {list(stamp)} after "
                f"{list(seen)}): an old record was written again; it is left alone"
            )


def _envelope(kind: str, data: bytes, path: str) -> _Envelope:
    try:
        if len(data) > MAX_BYTES:
            raise SignatureError(f"{path}: {len(data):,} bytes; a {kind} has at most {MAX_BYTES:,}")
        return msgspec.json.decode(data, type=_Envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SignatureError(f"{path}: no signed {kind}: {error}") from error


def _cipher(token: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        what = "every host of a cluster whose topologies have credentials"
        raise SetupError(needs_extra(what, "credentials", "cryptography")) from None
    return AESGCM(derived(token, _HIDING))


def _name(token: str) -> str:
    """Returns which token a key belongs to, without a way back to it."""
    return mac(derived(token, _PURPOSE), "name")[:8]


def _signature(token: str, kind: str, path: str, stamp: Stamp, payload: bytes) -> str:
    return mac(derived(token, _PURPOSE), "record", kind, path, f"{stamp[0]}.{stamp[1]}", payload)
