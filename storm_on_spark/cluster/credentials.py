"""Credentials of a topology that runs: what they may be, and how they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from storm_on_spark.cluster.errors import RecordError, TransitionError
from storm_on_spark.cluster.records import StoredCredentials
from storm_on_spark.cluster.security.keyring import Keyring

MOST_BYTES: Final = 64_000
"""Of all names and values together, in UTF-8."""
MOST_NAME: Final = 200
"""Characters of a name."""


def checked_credentials(given: object) -> dict[str, str]:
    """Returns credentials that a topology may have; an error shows no value.

    Args:
        given: name -> secret; empty to take all away.

    Raises:
        TransitionError: they are of another type, or too many.

    Example:
        >>> checked_credentials({"token": "s3cret"})
        {'token': 's3cret'}
        >>> checked_credentials({"token": 7})
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.errors.TransitionError: the value of 'token' has to be text, and is of type int
    """
    if not isinstance(given, Mapping):
        raise TransitionError(f"credentials have to be a mapping, name to text, and are of type {type(given).__name__}")
    found: dict[str, str] = {}
    size = 0
    for name, value in given.items():
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not name.isprintable():
            raise TransitionError(f"the name of a credential has to be text of 1 to {MOST_NAME} printable characters")
        if not isinstance(value, str):
            # No colon after the name: messages are scrubbed of what follows one.
            raise TransitionError(f"the value of {name!r} has to be text, and is of type {type(value).__name__}")
        try:
            size += len(name.encode()) + len(value.encode())
        except UnicodeEncodeError:
            raise TransitionError(f"the value of {name!r} is no text that UTF-8 can write") from None
        found[name] = value
    if size > MOST_BYTES:
        raise TransitionError(f"credentials have {size:,} bytes; a topology can have {MOST_BYTES:,} of them")
    return found


def sealed(credentials: Mapping[str, str], topology_id: str, path: str, keyring: Keyring) -> StoredCredentials:
    """Returns the record of credentials.

    Args:
        credentials: of `checked_credentials`.
        topology_id: whose they are.
        path: of the record's node.
        keyring: encrypts.

    Raises:
        SetupError: the cluster has no secret, or the library for it is missing.

    Example:
        >>> from storm_on_spark.cluster.security.tokens import Tokens
        >>> keyring = Keyring(Tokens(("0123456789abcdef",)))
        >>> record = sealed({"token": "s3cret"}, "words-1-1", "/storm/credentials/words-1-1", keyring)
        >>> opened(record, "/storm/credentials/words-1-1", keyring)
        {'token': 's3cret'}
    """
    key, text = keyring.encrypt(msgspec.json.encode(dict(credentials)), path)
    return StoredCredentials(topology_id=topology_id, key=key, sealed=text)


def opened(record: StoredCredentials, path: str, keyring: Keyring) -> dict[str, str]:
    """Returns the credentials of a record.

    Raises:
        SetupError: the library for it is missing.
        SignatureError: this process doesn't have the secret that they were encrypted with.
        RecordError: it holds something else.
    """
    data = keyring.decrypt(record.key, record.sealed, path)
    try:
        found: dict[str, str] = msgspec.json.decode(data, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise RecordError(f"{path}: it holds no credentials") from None
    return found


def encrypted_anew(record: Any, path: str, keyring: Keyring) -> Any:
    """Returns a record as the first token encrypts it; one of another kind, or that can't be read, stays as it is.

    Raises:
        SignatureError: it was encrypted with a secret that isn't known here.
    """
    if not isinstance(record, StoredCredentials) or record.key == keyring.first_key:
        return record
    return sealed(opened(record, path, keyring), record.topology_id, path, keyring)
