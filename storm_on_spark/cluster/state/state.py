"""Reading and writing the cluster's state.

Reads are tried again while the connection comes back. Writes are sent once: a caller that gets an `UnavailableError`
doesn't know whether the write happened, and must read before it writes again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

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
    FencedError,
    OwnershipLostError,
    RecordError,
    UnavailableError,
)
from storm_on_spark.cluster.paths import ASSIGNMENTS, CHECKPOINTS, ERRORS, LEADER_INFO, OWNERS, WORKERBEATS
from storm_on_spark.cluster.records import CheckpointInfo, ErrorRecord, Ownership, R, WorkerBeat
from storm_on_spark.cluster.security.keyring import NO_STAMP, Stamp, Stamps
from storm_on_spark.cluster.state.changes import Change, Check, Create, Delete, Fence, Put, Value
from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.runtime.reports.groups import key_of

T = TypeVar("T")

ERRORS_KEPT: Final = 20
"""Different ones of each component; older ones go."""
_SEQUENCE_DIGITS: Final = 10
"""At the end of a name that ZooKeeper has numbered."""
MAX_REQUEST_BYTES: Final = 1_000_000
"""A server closes a connection that sends more than `jute.maxbuffer`, 1,048,575 bytes."""
_DELETE_ROUNDS: Final = 10
_LOST: Final = (ConnectionLoss, OperationTimeoutError, SessionExpiredError)
_ANSWERS: Final = (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError)
_AWAY: Final = (*_LOST, ConnectionClosedError, AuthFailedError)


class ClusterState:
    """The contents of ZooKeeper, as records.

    Every method raises `UnavailableError` when ZooKeeper can't be reached. Parts name a node below the root:
    `state.get(StormBase, STORMS, topology_id)`.

    Args:
        session: a session that has been started.
    """

    def __init__(self, session: ZooKeeperSession) -> None:
        self.session = session
        self._client = session.client
        self._path = session.paths.of

    # Reading.

    def get(self, type_: type[R], *parts: str, stamps: Stamps | None = None) -> tuple[R, int] | None:
        """Returns a record and its version; None if there is no such node.

        `leader-info` is made empty, which is as if it weren't there. Any other node that is empty is damaged.

        Args:
            type_: of the record.
            parts: of the node's path.
            stamps: of what the caller has read before, and takes no older records than.

        Raises:
            SignatureError: it isn't signed with the cluster's secret as it has to be, or is older.
            RecordError: the node holds something else.
        """
        found = self.get_bytes(*parts)
        if found is None or (not found[0] and parts == (LEADER_INFO,)):
            return None
        path = self._path(*parts)
        opened = self.session.keyring.open(type_, found[0], path)
        if stamps is not None:
            stamps.check(path, type_.__name__, opened.stamp)
        return opened.record, found[1]

    def get_bytes(self, *parts: str) -> tuple[bytes, int] | None:
        """Returns what a node holds, and its version; None if there is no such node."""
        path = self._path(*parts)
        try:
            data, stat = self._read(lambda: self._client.get_async(path))
        except NoNodeError:
            return None
        return data, stat.version

    def children(self, *parts: str) -> list[str]:
        """Returns the names of the nodes below a node, sorted; none if there is no such node."""
        path = self._path(*parts)
        try:
            return sorted(self._read(lambda: self._client.get_children_async(path)))
        except NoNodeError:
            return []

    def created(self, *parts: str) -> int | None:
        """Returns the id of the transaction that made a node; None if there is no such node."""
        path = self._path(*parts)
        stat = self._read(lambda: self._client.exists_async(path))
        return None if stat is None else int(stat.czxid)

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
        checks = [(fence.lock_path, 0), (self._path(LEADER_INFO), fence.info_version)]
        results = self._transaction(checks, changes, fence.epoch)
        failed = _first_failure(results)
        if failed is not None:
            index, error = failed
            if index < len(checks):
                raise FencedError(f"leadership {fence.epoch} is over; refused: {_described(changes)}")
            change = changes[index - len(checks)]
            raise ConflictError(f"{type(change).__name__} {self._path(*change.parts)}: {type(error).__name__}")
        return tuple(
            _version_after(change, result) for change, result in zip(changes, results[len(checks) :], strict=True)
        )

    def delete_tree(self, fence: Fence, *parts: str) -> None:
        """Deletes a node and whatever is below it; none is fine.

        Raises:
            FencedError: the writer leads no longer.
            ConflictError: others go on making nodes there.
        """
        for _ in range(_DELETE_ROUNDS):
            nodes = self._tree(parts)
            if not nodes:
                return
            with contextlib.suppress(ConflictError):
                for start in range(0, len(nodes), 500):
                    self.commit(fence, *(Delete(node) for node in nodes[start : start + 500]))
                return
        raise ConflictError(f"{self._path(*parts)} can't be deleted: other sessions keep changing the nodes below it")

    # Everybody's writes.

    def create_ephemeral(self, value: Value, *parts: str) -> None:
        """Makes a node that goes with this session, or gives it a new value.

        A node of that name that an earlier session left is replaced.
        """
        path = self._path(*parts)
        data = _checked(self._bytes(value, path), path)
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
            raise ConflictError(f"{path} can't be made: there is nothing it could be in") from None
        except NodeExistsError:
            stat = self._read(lambda: self._client.exists_async(path))
        if stat is not None and stat.ephemeralOwner == session_id:
            self._write(lambda: self._client.set_async(path, data))
            return
        transaction = self._client.transaction()
        if stat is not None:
            transaction.delete(path, stat.version)
        transaction.create(path, data, acl=self.session.acl, ephemeral=True)
        failed = _first_failure(self._write(transaction.commit_async))
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

    def take_ownership(self, ownership: Ownership, assignment_version: int) -> None:
        """Makes the driver in `ownership` the only one of its topology, if its assignment is still the same.

        It may be asked for again by the same session, after an `UnavailableError` say.

        Raises:
            OwnershipLostError: the assignment has changed, or another driver owns the topology.
        """
        topology_id = ownership.topology_id
        path, assignment = self._path(OWNERS, topology_id), self._path(ASSIGNMENTS, topology_id)
        data = self._bytes(ownership, path)
        transaction = self._client.transaction()
        transaction.check(assignment, assignment_version)
        transaction.create(path, data, acl=self.session.acl, ephemeral=True)
        failed = _first_failure(self._write(transaction.commit_async))
        if failed is None:
            return
        index, error = failed
        who = f"driver {ownership.pid} on {ownership.host}:{ownership.port}"
        if index == 0:
            raise OwnershipLostError(f"{who}: {topology_id} isn't assigned to it any more ({type(error).__name__})")
        if not isinstance(error, NodeExistsError):
            raise ClusterError(f"{who}: can't own {topology_id}: {error!r}")
        try:
            found, stat = self._read(lambda: self._client.get_async(path))
        except NoNodeError:
            raise UnavailableError(f"{who}: {topology_id} has just lost its owner; try again") from None
        if stat.ephemeralOwner == self.session.session_id and found == data:
            return
        try:
            owner = self.session.keyring.decode(Ownership, found, path)
        except RecordError as error:
            raise UnavailableError(f"{who}: {topology_id} already has an owner: {error}; try again") from error
        raise OwnershipLostError(f"{who}: driver {owner.pid} on {owner.host}:{owner.port} owns {topology_id}", owner)

    def put_beat(self, beat: WorkerBeat) -> None:
        """Writes a driver's heartbeat."""
        path = self._path(WORKERBEATS, beat.topology_id)
        data = _checked(self._bytes(beat, path), path)
        try:
            self._write(lambda: self._client.set_async(path, data))
        except NoNodeError:
            with contextlib.suppress(NodeExistsError):
                self._write(lambda: self._client.create_async(path, data, acl=self.session.acl))

    def put_checkpoint(self, info: CheckpointInfo, assignment_version: int) -> bool:
        """Writes which state a topology has, if the writer's assignment is as it was and the topology has an owner.

        Returns:
            Whether that is what stands there now; not if it is to start from scratch in a later launch.

        Raises:
            OwnershipLostError: it is for another driver to say.
            UnavailableError: nobody owns the topology at the moment, or others write; try again.
        """
        topology_id = info.topology_id
        folder = (CHECKPOINTS, topology_id)
        try:
            there = self.get(CheckpointInfo, *folder)
        except RecordError:
            return False
        if there is not None and (there[0] == info or there[0].from_scratch > info.launch):
            return there[0] == info
        transaction = self._client.transaction()
        transaction.check(self._path(ASSIGNMENTS, topology_id), assignment_version)
        transaction.check(self._path(OWNERS, topology_id), -1)
        path = self._path(*folder)
        data = self._bytes(info, path)
        if there is None:
            transaction.create(path, data, acl=self.session.acl)
        else:
            transaction.set_data(path, data, there[1])
        failed = _first_failure(self._write(transaction.commit_async))
        if failed is None:
            return True
        if failed[0] == 0:
            raise OwnershipLostError(f"this driver no longer owns the state of {topology_id}")
        raise UnavailableError(f"{path} can't be written now: {type(failed[1]).__name__}")

    def add_error(self, topology_id: str, error: ErrorRecord) -> None:
        """Adds an error to those of its component: to the equal ones if there are any, also of earlier drivers.

        The last few different ones are kept. Only the topology's driver and supervisor write them: if both add an equal
        error at once, one may not be counted.
        """
        folder = (ERRORS, topology_id, quote(error.component, safe=""))
        path = self._path(*folder)
        key = key_of(error.component, error.task, error.message, error.trace)
        prefix = f"e-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}-"
        names = self._error_names(*folder)
        same = next((name for name in names if name.startswith(prefix)), None)
        with contextlib.suppress(RecordError):  # it is damaged, and replaced
            known = None if same is None else self.get(ErrorRecord, *folder, same)
            error = error if known is None else error.after(known[0])
        data = _checked(self._bytes(error, path), path)
        if same is not None:
            with contextlib.suppress(NoNodeError):  # the topology is being removed
                self._write(lambda: self._client.set_async(f"{path}/{same}", data))
            return
        self._write(lambda: self._client.ensure_path_async(path))
        self._write(lambda: self._client.create_async(f"{path}/{prefix}", data, acl=self.session.acl, sequence=True))
        for name in names[: max(0, len(names) + 1 - ERRORS_KEPT)]:
            with contextlib.suppress(NoNodeError):
                self._write(partial(self._client.delete_async, f"{path}/{name}"))

    def _error_names(self, *folder: str) -> list[str]:
        """Returns the names of a component's errors, in the order in which they were made."""
        return sorted(self.children(*folder), key=lambda name: name[-_SEQUENCE_DIGITS:])

    def errors(self, topology_id: str) -> dict[str, list[ErrorRecord]]:
        """Returns the last errors of each component, in the order of their last time; damaged ones are left out."""
        found: dict[str, list[ErrorRecord]] = {}
        for component in self.children(ERRORS, topology_id):
            records = found.setdefault(unquote(component), [])
            for name in self._error_names(ERRORS, topology_id, component):
                with contextlib.suppress(RecordError):
                    entry = self.get(ErrorRecord, ERRORS, topology_id, component, name)
                    if entry is not None:
                        records.append(entry[0])
            records.sort(key=lambda record: record.time)
        return found

    # How.

    def _bytes(self, value: Value, path: str, stamp: Stamp = NO_STAMP) -> bytes:
        """Returns what a node holds for a value."""
        return value if isinstance(value, bytes) else self.session.keyring.encode(value, path, stamp)

    def _transaction(self, checks: list[tuple[str, int]], changes: tuple[Change, ...], epoch: int) -> list[Any]:
        transaction = self._client.transaction()
        stamp = self.session.keyring.stamp(epoch)
        size = 0
        for path, version in checks:
            transaction.check(path, version)
        for change in changes:
            path = self._path(*change.parts)
            data = self._bytes(change.value, path, stamp) if isinstance(change, (Create, Put)) else b""
            size += len(path) + len(data) + 100
            if isinstance(change, Create):
                transaction.create(path, data, acl=self.session.acl)
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


def _version_after(change: Change, result: Any) -> int:
    if isinstance(change, Put):
        return int(result.version)
    if isinstance(change, Check):
        return change.version
    return 0 if isinstance(change, Create) else -1


def _described(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{type(change).__name__} {'/'.join(change.parts)}" for change in changes)


def _checked(data: bytes, path: str) -> bytes:
    if len(data) > MAX_REQUEST_BYTES:
        raise RecordError(f"{path}: {len(data):,} bytes; a request takes {MAX_REQUEST_BYTES:,}")
    return data
