"""HDFS, by a client that speaks its protocol without Java; set up from Hadoop's settings.

An object is written under a hidden name, forced to the disks of all its data nodes, closed and renamed: readers see
all of it or nothing, and a rename refuses a name that exists.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlparse

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.runtime.storage.background import in_background
from storm_on_spark.runtime.storage.interface import Storage, StoredObject, checked
from storm_on_spark.runtime.storage.s3 import Lookup

if TYPE_CHECKING:
    from hdfs_native import Client

T = TypeVar("T")

_USER = "HADOOP_USER_NAME"
_CALL_SECS = 60.0
"""The limit for one call: without it the client waits for ever if a name node hangs."""
_KEYS = (
    "dfs.client.block.write.replace-datanode-on-failure.best-effort",
    "dfs.client.block.write.replace-datanode-on-failure.enable",
    "dfs.client.block.write.replace-datanode-on-failure.policy",
    "dfs.client.failover.max.attempts",
    "dfs.client.failover.random.order",
    "dfs.client.failover.sleep.base.millis",
    "dfs.client.failover.sleep.max.millis",
    "dfs.client.socket-timeout",
    "dfs.client.use.datanode.hostname",
    "dfs.data.transfer.protection",
    "dfs.namenode.kerberos.principal",
    "dfs.replication",
    "hadoop.rpc.protection",
    "hadoop.security.authentication",
    "hadoop.security.key.provider.path",
)
"""Hadoop's settings that the client knows, apart from those of name services. None of them is a secret."""
_OF_SERVICE = (
    "dfs.client.failover.proxy.provider.{}",
    "dfs.client.failover.random.order.{}",
    "dfs.client.failover.resolve-needed.{}",
    "dfs.ha.namenodes.{}",
)
_ATTEMPTS = {"dfs.client.failover.max.attempts": "6"}
"""A name node that refuses connections is an error after some seconds, not after minutes."""
_REMOTE = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "(.*)')
"""How the client shows an error of a server: its class in Java and its text."""
_NUMBERS: Final[Mapping[type[Exception], int]] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
}
"""Of errors that the client raises without one, and with the name node's whole trace."""
_ERRORS = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "QuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "SafeModeException": errno.EROFS,
}


@dataclass(frozen=True)
class HdfsPlace:
    """A folder of an HDFS."""

    service: str
    """Name node as host and port, or a name service."""
    folder: str
    """Without `/` at its ends."""
    settings: tuple[tuple[str, str], ...] = ()
    """Hadoop's, of those that the client knows."""
    user: str | None = None
    """The user name for a name node without authentication; None for the user of the process."""

    def open(self) -> Storage:
        """Returns the store; nothing is asked of the name node yet.

        Raises:
            SetupError: the client is not installed.
        """
        if find_spec("hdfs_native") is None:
            raise SetupError(needs_extra("hdfs://", "hdfs", "hdfs-native"))
        if self.user is not None:
            # The client reads its user only from the environment. Spark's Java has the same user already.
            os.environ.setdefault(_USER, self.user)
        return HdfsStorage(self)


class HdfsStorage(Storage):
    """Keeps each object in a file.

    Args:
        place: where.
        timeout_secs: most time that one call may take.
    """

    def __init__(self, place: HdfsPlace, timeout_secs: float = _CALL_SECS) -> None:
        self._place = place
        self._timeout = timeout_secs
        self._lock = threading.Lock()
        self._client: Client | None = None
        self.url = f"hdfs://{place.service}/{place.folder}"

    def create(self, name: str, data: bytes) -> None:
        """Makes an object; the name node refuses a name that exists."""
        path = self._path(name)
        made = self._call(lambda client: self._write(client, path, data, overwrite=False))
        if not made and self.read(name) != data:
            raise FileExistsError(errno.EEXIST, "exists with other content", f"{self.url}/{name}")

    def put(self, name: str, data: bytes) -> None:
        """Makes or replaces an object by renaming."""
        path = self._path(name)
        self._call(lambda client: self._write(client, path, data, overwrite=True))

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Returns bytes of an object."""
        path = self._path(name)

        def work(client: Client) -> bytes:
            reader = client.read(path)
            wanted = max(0, len(reader) - start)
            wanted = wanted if length is None else min(length, wanted)
            return reader.read_range(start, wanted) if wanted else b""

        return self._call(work)

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        """Returns the objects of a folder by name."""
        top = self._path(folder) if folder else f"/{self._place.folder}"
        cut = len(self._place.folder) + 2
        try:
            found = self._call(lambda client: list(client.list_status(top, deep)))
        except FileNotFoundError:
            return []
        return sorted(
            StoredObject(status.path[cut:], status.length)
            for status in found
            # Listing a file returns its own status; listing a folder returns its contents.
            if not status.isdir and status.path != top and not status.path.rpartition("/")[2].startswith(".")
        )

    def delete(self, name: str) -> None:
        """Deletes an object. Its folder stays: another process may be about to write there."""
        path = self._path(name)
        with suppress(FileNotFoundError):
            self._call(lambda client: client.delete(path, False))

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder with all that is in it, by one request."""
        path = self._path(folder)
        with suppress(FileNotFoundError):
            self._call(lambda client: client.delete(path, True))

    def remove_half_written(self) -> None:
        """Removes files under hidden names. A writer that was replaced and is about to rename one gets an error."""

        def work(client: Client) -> None:
            try:
                found = list(client.list_status(f"/{self._place.folder}", True))
            except FileNotFoundError:
                return
            for status in found:
                name = status.path.rpartition("/")[2]
                if name.startswith(".") and name.endswith(".tmp") and not status.isdir:
                    client.delete(status.path, False)

        self._call(work)

    def close(self) -> None:
        """Closes connections."""
        with self._lock:
            self._client = None

    def _path(self, name: str) -> str:
        return f"/{self._place.folder}/{checked(name)}"

    def _write(self, client: Client, path: str, data: bytes, *, overwrite: bool) -> bool:
        """Writes a file, and returns whether it got its name: with `overwrite` it always does."""
        from hdfs_native import WriteOptions

        folder = path.rpartition("/")[0]
        temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
        options = WriteOptions(permission=0o600, overwrite=False, create_parent=False)
        try:
            writer = client.create(temporary, options)
        except FileNotFoundError:
            client.mkdirs(folder, 0o700, True)
            writer = client.create(temporary, options)
        try:
            if data:
                writer.write(data)
                # After closing alone, the file is only in the memory of the data nodes.
                writer.hsync()
            writer.close()
            client.rename(temporary, path, overwrite)
        except FileExistsError:
            with suppress(Exception):
                client.delete(temporary, False)
            return False
        except BaseException:
            with suppress(Exception):
                client.delete(temporary, False)
            raise
        return True

    def _call(self, work: Callable[[Client], T]) -> T:
        """Returns what `work` returns; its errors are `OSError`s.

        A separate thread can be left behind; it takes 0.1 ms where a write takes 20.
        """
        client = self._connected()
        try:
            return in_background(lambda: work(client), "hdfs").result(self._timeout)
        except FutureTimeoutError:
            with self._lock:
                if self._client is client:
                    self._client = None
            raise TimeoutError(
                errno.ETIMEDOUT, f"{self.url}: no answer from HDFS for {self._timeout:.0f} s", self.url
            ) from None
        except Exception as error:
            raise _as_os_error(error, self.url) from error

    def _connected(self) -> Client:
        from hdfs_native import Client

        with self._lock:
            if self._client is None:
                try:
                    self._client = Client(f"hdfs://{self._place.service}", {**_ATTEMPTS, **dict(self._place.settings)})
                except Exception as error:
                    raise _as_os_error(error, self.url) from error
            return self._client


def hdfs_place(url: str, setting: Lookup, user: str | None = None) -> HdfsPlace:
    """Returns the place that an `hdfs` URL names, as Hadoop would reach it.

    Args:
        url: such as `hdfs://namenode:8020/folder`.
        setting: looks a setting of Hadoop up.
        user: the user of Hadoop.

    Raises:
        SetupError: the URL names no name node.

    Example:
        >>> settings = {
        ...     "dfs.ha.namenodes.data": "nn1,nn2",
        ...     "dfs.namenode.rpc-address.data.nn1": "one:8020",
        ...     "dfs.namenode.rpc-address.data.nn2": "two:8020",
        ... }
        >>> place = hdfs_place("hdfs://data/checkpoints/count", settings.get)
        >>> place.service, place.folder, len(place.settings)
        ('data', 'checkpoints/count', 3)
    """
    parsed = urlparse(url)
    service, folder = parsed.netloc, parsed.path.strip("/")
    if not service or not folder:
        raise SetupError(f"{url!r} must name a name node or a name service, and a folder: hdfs://namenode:8020/folder")
    keys = [*_KEYS, *(key.format(service) for key in _OF_SERVICE)]
    nodes = setting(f"dfs.ha.namenodes.{service}") or ""
    keys += [f"dfs.namenode.rpc-address.{service}.{node.strip()}" for node in nodes.split(",") if node.strip()]
    found = tuple((key, value) for key in keys if (value := setting(key)))
    kerberos = dict(found).get("hadoop.security.authentication", "simple") != "simple"
    return HdfsPlace(service, folder, found, None if kerberos else user)


def _as_os_error(error: Exception, url: str) -> OSError:
    """Returns an error of the client as an `OSError`, with the first line of its message."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    said = str(error).replace("\\n", "\n").partition("\n")[0].strip()[:500] or type(error).__name__
    number = _NUMBERS.get(type(error), errno.EIO)
    if found := _REMOTE.fullmatch(said):
        number, said = _ERRORS.get(found[1], errno.EIO), f"{found[1]}: {found[2]}"
    return OSError(number, f"{url}: {said}", url)
