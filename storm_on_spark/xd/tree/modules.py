"""The registry of a cluster: modules that were composed or uploaded at an admin are there in every container.

Records stand in ZooKeeper. The file of an uploaded module stands in the folder that all share, by its SHA-256, which is
in the record: a file that was changed is refused before it is executed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError

from storm_on_spark.cluster.errors import SignatureError, UnavailableError
from storm_on_spark.xd.modules.declaration import ModuleType
from storm_on_spark.xd.modules.local_registry import (
    RECORD_VERSION,
    LocalRegistry,
    ModuleRegistryError,
    checked_record,
)
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.session import XdSession

_KIND = "Module"
"""Of the records, for their signatures."""


class ClusterRegistry(LocalRegistry):
    """The modules of a cluster, and below them those of this machine. What is added is the cluster's.

    Args:
        session: that is connected.
        folder: with the files of uploaded modules; that of `home()` for None.
    """

    def __init__(self, session: XdSession, folder: str | os.PathLike[str] | None = None) -> None:
        super().__init__(folder)
        self._session = session

    def _record(self, type: ModuleType, name: str) -> dict[str, str] | None:  # noqa: A002
        try:
            data, _ = self._asked(self._session.client.get_async(_path(type, name)))
        except NoNodeError:
            return super()._record(type, name)
        try:
            return checked_record(json.loads(self._session.payload(data, _KIND, _path(type, name))))
        except SignatureError as error:
            raise ModuleRegistryError(f"module {type}:{name}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ModuleRegistryError(f"module {type}:{name}: ZooKeeper's record can't be read: {error}") from error

    def _names(self, type: ModuleType) -> list[str]:  # noqa: A002
        try:
            found = self._asked(self._session.client.get_children_async(nodes.MODULES))
        except NoNodeError:
            found = []
        own = (text.partition(".")[2] for text in found if text.startswith(f"{type}."))
        return sorted({*own, *super()._names(type)})

    def _has(self, type: ModuleType, name: str) -> bool:  # noqa: A002
        there = self._asked(self._session.client.exists_async(_path(type, name))) is not None
        return there or super()._has(type, name)

    def _check_free(self, type: ModuleType, name: str) -> None:  # noqa: A002
        try:
            super()._check_free(type, name)
        except ModuleRegistryError as error:
            if not LocalRegistry._has(self, type, name):  # noqa: SLF001 # its own parent's
                raise
            where = f"it is no module of the cluster, but in the admin's folder {self._folder}"
            raise ModuleRegistryError(f"{error}: {where}; `storm-spark module delete` deletes it there") from None

    def _write(self, type: ModuleType, name: str, record: Mapping[str, str]) -> None:  # noqa: A002
        session, value = self._session, json.dumps({"version": RECORD_VERSION, **record}).encode()
        with contextlib.suppress(NodeExistsError):
            self._asked(session.client.create_async(nodes.MODULES, nodes.EMPTY, acl=session.acl))
        path = _path(type, name)
        try:
            stamp, _ = session.next_stamp(nodes.MODULES)
            sealed = session.keyring.seal(_KIND, value, path, stamp)
            self._asked(session.client.create_async(path, sealed, acl=session.acl))
        except NodeExistsError:
            raise ModuleRegistryError(f"there is already a module {type}:{name}") from None

    def _remove(self, type: ModuleType, name: str) -> None:  # noqa: A002
        try:
            self._asked(self._session.client.delete_async(_path(type, name)))
        except NoNodeError:
            super()._remove(type, name)

    def _asked(self, result: Any) -> Any:
        try:
            return self._session.wait(result)
        except (NoNodeError, NodeExistsError):
            raise
        except KazooException as error:
            raise UnavailableError(f"the modules can't be read or written in ZooKeeper: {error!r}") from error


def _path(type: ModuleType, name: str) -> str:  # noqa: A002
    return f"{nodes.MODULES}/{type}.{name}"
