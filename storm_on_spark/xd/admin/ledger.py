"""Writes of the leading admin: transactions that ZooKeeper refuses once another one leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from kazoo.exceptions import BadVersionError, KazooException, NoNodeError, RolledBackError, RuntimeInconsistency

from storm_on_spark.cluster.errors import ConflictError, FencedError, UnavailableError
from storm_on_spark.cluster.state import Fence
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.nodes import Node
from storm_on_spark.xd.tree.session import XdSession


@dataclass(frozen=True)
class Make:
    """A node is made; a conflict if it is there."""

    path: str
    value: Node | None = None
    """None for a folder."""
    ephemeral: bool = False


@dataclass(frozen=True)
class Write:
    """A node gets a value; a conflict if it has another version than this."""

    path: str
    value: Node
    version: int


@dataclass(frozen=True)
class Remove:
    """A node goes; a conflict if it is not there, or has children."""

    path: str


Change = Make | Write | Remove

N = TypeVar("N", bound=Node)


class Ledger:
    """Writes what the leader decides.

    Args:
        session: of the admin.
    """

    def __init__(self, session: XdSession) -> None:
        self._session = session

    def read(self, path: str, kind: type[N]) -> N | None:
        """Returns the value of a node as ZooKeeper has it now; None if it is not there, or is something else.

        Raises:
            UnavailableError: ZooKeeper is away.
        """
        try:
            data: bytes = self._session.wait(self._session.client.get_async(path))[0]
        except NoNodeError:
            return None
        except KazooException as error:
            raise UnavailableError(f"ZooKeeper can't be read: {error!r}") from error
        return self._session.opened(data, kind, path)

    def commit(self, fence: Fence, changes: Sequence[Change]) -> None:
        """Makes all changes, or none.

        Raises:
            FencedError: another admin leads.
            ConflictError: the tree has changed meanwhile; the next round starts from what is there then.
            UnavailableError: ZooKeeper is away.
        """
        transaction = self._session.client.transaction()
        transaction.check(fence.lock_path, 0)
        transaction.check(nodes.ADMINS, fence.info_version)
        for change in changes:
            if isinstance(change, Make):
                transaction.create(
                    change.path, self._sealed(change, fence), acl=self._session.acl, ephemeral=change.ephemeral
                )
            elif isinstance(change, Write):
                transaction.set_data(change.path, self._sealed(change, fence), change.version)
            else:
                transaction.delete(change.path)
        try:
            with self._session.proof():
                results = self._session.wait(transaction.commit_async())
        except KazooException as error:
            raise UnavailableError(f"ZooKeeper can't be written: {error!r}") from error
        for index, result in enumerate(results):
            if not isinstance(result, Exception) or isinstance(result, RolledBackError | RuntimeInconsistency):
                continue
            if index < 2 and isinstance(result, NoNodeError | BadVersionError):
                raise FencedError(f"leadership {fence.epoch} is over")
            raise ConflictError(f"{changes[max(0, index - 2)]}: {type(result).__name__}")

    def _sealed(self, change: Make | Write, fence: Fence) -> bytes:
        if change.value is None:
            return nodes.EMPTY
        return self._session.sealed(change.value, change.path, self._session.keyring.stamp(fence.epoch))
