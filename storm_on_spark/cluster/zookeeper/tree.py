"""Reading and writing records in ZooKeeper: one implementation for the trees of Nimbuses and of streams.

Reads are tried again while the connection comes back. Writes are sent once: a caller that gets an `UnavailableError`
doesn't know whether the write happened, and must read before it writes again.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)

from storm_on_spark.cluster.errors import (
    ClusterError,
    ConflictError,
    ExistsError,
    FencedError,
    NotFoundError,
    RecordError,
    UnavailableError,
)
from storm_on_spark.cluster.records import R
from storm_on_spark.cluster.security.keyring import NO_STAMP, Stamp, Stamps
from storm_on_spark.cluster.zookeeper.changes import Change, Check, Create, Delete, Fence, Place, Put, Value
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES: Final = 1_000_000
"""A server closes a connection that sends more than `jute.maxbuffer`, 1,048,575 bytes."""
_DELETE_ROUNDS: Final = 10
_DELETED_AT_ONCE: Final = 500
_MOST_REFUSED: Final = 10_000
_LOST: Final = (ConnectionLoss, OperationTimeoutError, SessionExpiredError)
_ANSWERS: Final = (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError)
_AWAY: Final = (*_LOST, ConnectionClosedError, AuthFailedError)


class Tree:
    """The contents of ZooKeeper below a root, as records.

    Every method raises `UnavailableError` when ZooKeeper can't be reached. Parts name a node below the root:
    `tree.get(StormBase, STORMS, topology_id)`; a whole path does, too.

    Args:
        session: a session that has been started.
        stamps: of what was read before, in an earlier session; older records don't count.
    """

    def __init__(self, session: ZooKeeperSession, stamps: Stamps | None = None) -> None:
        self.session = session
        self._client = session.client
        self._path = session.paths.of
        self._stamps = Stamps() if stamps is None else stamps
        self._refused = _Refused()

    # Reading.

    def get(self, type_: type[R], *parts: str) -> tuple[R, int] | None:
        """Returns a record and its version; None if there is no such node.

        The node that says who leads is made empty, which is as if it weren't there. Any other that is empty is damaged.

        Raises:
            SignatureError: it isn't signed with the cluster's secret as it has to be, or is older than one that was
                read there before.
            RecordError: the node holds something else.
        """
        found = self.get_bytes(*parts)
        if found is None or (not found[0] and parts == (self.session.paths.layout.info,)):
            return None
        return self._opened(type_, found[0], self._path(*parts), self._stamps), found[1]

    def read(self, type_: type[R], *parts: str) -> R | None:
        """Returns a record; None if there is no such node, or for one that `believed` leaves out."""
        return self.read_with_stat(type_, *parts)[0]

    def read_with_stat(self, type_: type[R], *parts: str) -> tuple[R | None, Any | None]:
        """Returns the same, and what ZooKeeper knows of the node; None for that if there is none."""
        return self._found(type_, self._path(*parts), [])

    def read_all(self, type_: type[R], *parts: str) -> dict[str, R]:
        """Returns the records in a folder by name; those that `believed` leaves out are not among them."""
        folder = self._path(*parts)
        # Asked for together: one round trip for all of them.
        asked = {name: self._client.get_async(f"{folder}/{name}") for name in self.children(*parts)}
        found: dict[str, R] = {}
        for name, first in asked.items():
            record, _ = self._found(type_, f"{folder}/{name}", [first])
            if record is not None:
                found[name] = record
        return found

    def _found(self, type_: type[R], path: str, asked: list[Any]) -> tuple[R | None, Any | None]:
        """Returns what is at a path; what was asked for already is looked at first."""
        try:
            data, stat = self._read(lambda: asked.pop() if asked else self._client.get_async(path))
        except NoNodeError:
            return None, None
        return self.believed(type_, data, path), stat

    def believed(self, type_: type[R], data: bytes, path: str, stamps: Stamps | None = None) -> R | None:
        """Returns the record in a node; None for what is none, or is not signed as it has to be.

        It counts as if it was not there. What is wrong with a node is logged once.

        Args:
            type_: of the record.
            data: what the node holds.
            path: of the node.
            stamps: the newest ones that were seen by this reader; those of the tree for None.
        """
        try:
            record = self._opened(type_, data, path, self._stamps if stamps is None else stamps)
        except RecordError as error:
            self._refused.note(path, str(error))
            return None
        self._refused.forget(path)
        return record

    def _opened(self, type_: type[R], data: bytes, path: str, stamps: Stamps) -> R:
        opened = self.session.keyring.open(type_, data, path)
        if self.session.keyring.signs:
            stamps.check(path, type_.__name__, opened.stamp)
        return opened.record

    def get_bytes(self, *parts: str) -> tuple[bytes, int] | None:
        """Returns what a node holds, and its version; None if there is no such node."""
        path = self._path(*parts)
        try:
            data, stat = self._read(lambda: self._client.get_async(path))
        except NoNodeError:
            return None
        return data, stat.version

    def stat(self, *parts: str) -> Any | None:
        """Returns what ZooKeeper knows of a node; None if there is no such node."""
        path = self._path(*parts)
        return self._read(lambda: self._client.exists_async(path))

    def children(self, *parts: str) -> list[str]:
        """Returns the names of the nodes below a node, sorted; none if there is no such node."""
        path = self._path(*parts)
        try:
            return sorted(self._read(lambda: self._client.get_children_async(path)))
        except NoNodeError:
            return []

    # A leader's writes.

    def commit(self, fence: Fence, *changes: Change) -> tuple[int, ...]:
        """Makes changes, all or none, if the fence holds.

        Returns:
            The version of each change's node: 0 for a new one, -1 for one that went.

        Raises:
            FencedError: the writer leads no longer.
            ConflictError: a node is not as one of the changes expects it to be.
            RecordError: the changes are too large for one transaction.
        """
        checks = [(fence.lock_path, 0), (self._path(self.session.paths.layout.info), fence.info_version)]
        results = self._transaction(checks, changes, self.session.keyring.stamp(fence.epoch))
        failed = _first_failure(results)
        if failed is not None:
            index, error = failed
            if index < len(checks):
                raise FencedError(f"leadership {fence.epoch} is over; refused: {_described(changes)}")
            change = changes[index - len(checks)]
            raise ConflictError(f"{type(change).__name__} {self._path(*_parts(change.place))}: {type(error).__name__}")
        return tuple(
            _version_after(change, result) for change, result in zip(changes, results[len(checks) :], strict=True)
        )

    def delete_tree(self, fence: Fence, *parts: str, last: Callable[..., object] | None = None) -> None:
        """Deletes a node and whatever is below it; none is fine.

        Args:
            fence: the leadership.
            parts: of the node.
            last: what commits the last of the changes, the node's own among them; `commit` for None.

        Raises:
            FencedError: the writer leads no longer.
            ConflictError: others keep making nodes there.
        """
        for _ in range(_DELETE_ROUNDS):
            nodes = self._tree(parts)
            if not nodes:
                return
            with contextlib.suppress(ConflictError):
                while len(nodes) > _DELETED_AT_ONCE:
                    self.commit(fence, *map(Delete, nodes[:_DELETED_AT_ONCE]))
                    del nodes[:_DELETED_AT_ONCE]
                (last or self.commit)(fence, *map(Delete, nodes))
                return
        raise ConflictError(f"{self._path(*parts)} can't be deleted: other sessions keep changing the nodes below it")

    # Everybody's writes.

    def change(self, *changes: Change) -> tuple[int, Exception] | None:
        """Makes changes, all or none; returns which of them failed, and how, or None.

        Raises:
            RecordError: the changes are too large for one transaction.
        """
        return _first_failure(self._transaction([], changes))

    def create_ephemeral(self, value: Value, *parts: str) -> None:
        """Makes a node that goes with this session, or gives it a new value.

        A node of that name that an earlier session left is replaced.
        """
        path = self._path(*parts)
        data = self._bytes(value, path)
        session_id = self.session.session_id
        create = partial(self._client.create_async, path, data, acl=self.session.acl, ephemeral=True)
        try:
            try:
                self._write(create)
            except NoNodeError:
                # The first of a new cluster.
                self.session.ensure_folders()
                self._write(create)
            return
        except NoNodeError:
            raise ConflictError(f"{path} can't be made: its parent does not exist") from None
        except NodeExistsError:
            stat = self._read(lambda: self._client.exists_async(path))
        if stat is not None and stat.ephemeralOwner == session_id:
            self._write(lambda: self._client.set_async(path, data))
            return
        replaced = () if stat is None else (Delete(path, stat.version),)
        failed = self.change(*replaced, Create(path, value, ephemeral=True))
        if failed is not None:
            raise ConflictError(f"another session changed {path} while this one created it: {type(failed[1]).__name__}")

    def delete_ephemeral(self, *parts: str) -> bool:
        """Deletes a node if it is of this session.

        Returns:
            Whether it was.
        """
        path = self._path(*parts)
        stat = self._read(lambda: self._client.exists_async(path))
        if stat is None or stat.ephemeralOwner != self.session.session_id:
            return False
        with contextlib.suppress(NoNodeError):
            self._write(lambda: self._client.delete_async(path))
        return True

    def add(self, value: R, folder: str, name: str | Callable[[int], str]) -> str:
        """Makes a node that stays, and returns its path.

        Its stamp is ZooKeeper's number of the last change in the folder, so it is above that of every node that stood
        there before, whichever process made it.

        Args:
            value: of the node.
            folder: its path.
            name: of the node; a function returns it from how many nodes were made in the folder. ZooKeeper counts the
                same for a sequential node, whose path is not known before it is made: it couldn't be signed.

        Raises:
            ExistsError: there is one of that name.
        """
        while True:
            number, change = self.made_in(folder)
            path = f"{folder}/{name if isinstance(name, str) else name(number)}"
            data = self._bytes(value, path, self.session.keyring.stamp(change))
            try:
                self._write(partial(self._client.create_async, path, data, acl=self.session.acl))
                return path
            except NodeExistsError:
                if isinstance(name, str):
                    raise ExistsError(f"ZooKeeper has a node {path} already") from None

    def made_in(self, folder: str) -> tuple[int, int]:
        """Returns how many nodes were ever made in a folder, and ZooKeeper's number of the last change there.

        Raises:
            NotFoundError: there is no such folder.
        """
        stat = self.stat(folder)
        if stat is None:
            raise NotFoundError(f"ZooKeeper has no node {folder}")
        # What a client gets as `cversion` counts nodes made and removed.
        return (stat.cversion + stat.numChildren) // 2, stat.pzxid

    def put(self, value: Value, *parts: str) -> bool:
        """Writes a node, or makes it; returns whether it could: its parent is there."""
        path = self._path(*parts)
        data = self._bytes(value, path)
        with contextlib.suppress(NoNodeError):
            self._write(lambda: self._client.set_async(path, data))
            return True
        try:
            self._write(lambda: self._client.create_async(path, data, acl=self.session.acl))
        except NodeExistsError:
            return self.put(value, *parts)
        except NoNodeError:
            return False
        return True

    def delete(self, *parts: str, version: int = -1) -> bool:
        """Deletes a node; returns whether there was one."""
        path = self._path(*parts)
        try:
            self._write(lambda: self._client.delete_async(path, version))
        except NoNodeError:
            return False
        return True

    # How.

    def _bytes(self, value: Value, path: str, stamp: Stamp = NO_STAMP) -> bytes:
        """Returns what a node holds for a value."""
        data = value if isinstance(value, bytes) else self.session.keyring.encode(value, path, stamp)
        if len(data) > MAX_REQUEST_BYTES:
            raise RecordError(f"{path}: {len(data):,} bytes; a request takes {MAX_REQUEST_BYTES:,}")
        return data

    def _transaction(
        self, checks: list[tuple[str, int]], changes: tuple[Change, ...], stamp: Stamp = NO_STAMP
    ) -> list[Any]:
        transaction = self._client.transaction()
        size = 0
        for path, version in checks:
            transaction.check(path, version)
        for change in changes:
            path = self._path(*_parts(change.place))
            data = self._bytes(change.value, path, stamp) if isinstance(change, (Create, Put)) else b""
            size += len(path) + len(data) + 100
            if isinstance(change, Create):
                transaction.create(path, data, acl=self.session.acl, ephemeral=change.ephemeral)
            elif isinstance(change, Put):
                transaction.set_data(path, data, change.version)
            elif isinstance(change, Delete):
                transaction.delete(path, change.version)
            else:
                transaction.check(path, change.version)
        if size > MAX_REQUEST_BYTES:
            raise RecordError(
                f"{len(changes)} changes of {size:,} bytes; one transaction takes {MAX_REQUEST_BYTES:,}: "
                f"{_described(changes)}"
            )
        with self.session.proof():
            results: list[Any] = self._write(transaction.commit_async)
        return results

    def _tree(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Returns a node and all below it, leaves first."""
        path = self._path(*parts)
        try:
            names = self._read(lambda: self._client.get_children_async(path))
        except NoNodeError:
            return []
        return [node for name in names for node in self._tree((*parts, name))] + [parts]

    def _read(self, call: Callable[[], Any]) -> Any:
        settings = self.session.settings
        delay = settings.retry_interval_secs
        for attempt in range(settings.retry_times + 1):
            try:
                return self.session.wait(call())
            except (ConnectionClosedError, AuthFailedError) as error:
                raise UnavailableError(f"the connection to ZooKeeper is closed: {error!r}") from error
            except _LOST as error:
                if attempt == settings.retry_times:
                    raise UnavailableError(f"ZooKeeper ({settings.hosts}) can't be reached: {error!r}") from error
                self.session.wait_connected(delay)
                delay = min(2 * delay, settings.retry_ceiling_secs)
            except _ANSWERS:
                raise
            except KazooException as error:
                raise _refused(error) from error
        raise AssertionError

    def _write(self, call: Callable[[], Any]) -> Any:
        if not self.session.wait_connected(self.session.settings.retry_interval_secs):
            raise UnavailableError(f"ZooKeeper ({self.session.settings.hosts}) can't be reached; nothing was written")
        try:
            return self.session.wait(call())
        except _AWAY as error:
            raise UnavailableError(
                f"the connection to ZooKeeper broke; what was written may or may not have arrived: {error!r}"
            ) from error
        except _ANSWERS:
            raise
        except KazooException as error:
            raise _refused(error) from error


def _refused(error: KazooException) -> ClusterError:
    """Returns what to raise for an answer that no operation here expects, such as that the ACL forbids it."""
    return ClusterError(f"ZooKeeper refused: {type(error).__name__} {error}".rstrip())


def _first_failure(results: list[Any]) -> tuple[int, Exception] | None:
    """Returns which operation of a transaction failed, and how; the others' results only say that one did."""
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, (RolledBackError, RuntimeInconsistency)):
            return index, result
    return None


def _parts(place: Place) -> tuple[str, ...]:
    return (place,) if isinstance(place, str) else place


def _version_after(change: Change, result: Any) -> int:
    if isinstance(change, Put):
        return int(result.version)
    if isinstance(change, Check):
        return change.version
    return 0 if isinstance(change, Create) else -1


def _described(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{type(change).__name__} {'/'.join(_parts(change.place))}" for change in changes)


class _Refused:
    """Nodes whose records are not what they have to be; each is logged once. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Path -> why; changes under the lock.
        self._reasons: dict[str, str] = {}

    def note(self, path: str, reason: str) -> None:
        """Notes a node, and logs it if that is new."""
        with self._lock:
            if self._reasons.get(path) == reason or len(self._reasons) >= _MOST_REFUSED:
                return
            self._reasons[path] = reason
        logger.error("%s", reason)

    def forget(self, path: str) -> None:
        """Forgets a node, whose record is right by now."""
        if path in self._reasons:
            with self._lock:
                self._reasons.pop(path, None)
