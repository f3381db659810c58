"""Values of records: only those written by containers of this cluster are accepted.

A value is a pickle, since a payload may be any Python value. Reading a pickle may run code, so a MAC precedes each one.
Its key is a file in the folder that all containers share, and stays there.
"""

from __future__ import annotations

import hashlib
import hmac
import pickle
import secrets
from pathlib import Path
from typing import Any, Final

from storm_on_spark.runtime.storage.durable import make_folder
from storm_on_spark.xd.bus.files import make_once
from storm_on_spark.xd.bus.port import BusError

_MAGIC: Final = b"XDK1"
_MAC_BYTES: Final = 32
_KEY_BYTES: Final = 32
_KEY_FILE: Final = "kafka.key"
_TAG: Final = 6
OVERHEAD: Final = len(_MAGIC) + _MAC_BYTES


class Seals:
    """Seals values, and opens them.

    Args:
        key: of the cluster.

    Example:
        >>> seals = Seals(bytes(32))
        >>> seals.opened("xd.orders", seals.sealed("xd.orders", (1, "a")))
        (1, 'a')
        >>> seals.opened("xd.orders", Seals(bytes(31) + b"1").sealed("xd.orders", 1))
        Traceback (most recent call last):
            ...
        storm_on_spark.xd.bus.port.BusError: a record of xd.orders is not of this cluster, or is damaged
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, folder: Path) -> Seals:
        """Returns the seals of a cluster; the first container creates the key.

        Args:
            folder: that all containers share.

        Raises:
            BusError: the file is not a key.
        """
        path = folder / _KEY_FILE
        make_folder(folder, sync=False)
        if not path.exists():
            make_once(path, secrets.token_bytes(_KEY_BYTES), sync=True)
        key = path.read_bytes()
        if len(key) != _KEY_BYTES:
            raise BusError(f"{path} is not a key of a bus: it has {len(key)} bytes, not {_KEY_BYTES}")
        path.chmod(0o600)
        return cls(key)

    @property
    def tag(self) -> str:
        """Distinguishes the cluster from others; reveals nothing about the key."""
        return hashlib.sha256(b"tag" + self._key).hexdigest()[:_TAG]

    def sealed(self, name: str, value: object) -> bytes:
        """Returns a value in its written form; `opened` needs the same name, such as that of a topic."""
        body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return _MAGIC + self._mac(name, body) + body

    def opened(self, name: str, data: bytes | None) -> Any:
        """Returns the value of a record that was read.

        Raises:
            BusError: no container of this cluster wrote it.
        """
        body = (data or b"")[OVERHEAD:]
        head = _MAGIC + self._mac(name, body)
        if not hmac.compare_digest(head, (data or b"")[:OVERHEAD]):
            raise BusError(f"a record of {name} is not of this cluster, or is damaged")
        return pickle.loads(body)  # noqa: S301 # its MAC is right

    def _mac(self, name: str, body: bytes) -> bytes:
        return hmac.digest(self._key, name.encode() + b"\0" + body, "sha256")
