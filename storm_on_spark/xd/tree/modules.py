"""The registry of a cluster: every container has the modules that were composed or uploaded at an admin.

Records are in ZooKeeper. The file of an uploaded module is in the shared folder, named by its SHA-256, which is also in
the record: a changed file is refused before it is executed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from storm_on_spark.cluster.errors import ExistsError, RecordError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.modules.declaration import ModuleType
from storm_on_spark.xd.modules.local_registry import (
    RECORD_VERSION,
    LocalRegistry,
    ModuleRegistryError,
    checked_record,
)
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.nodes import Module


class ClusterRegistry(LocalRegistry):
    """The modules of a cluster, then those of this machine. New modules are added to the cluster.

    Args:
        tree: in ZooKeeper, over a session that is connected.
        folder: with the files of uploaded modules; None for the one in `home()`.
    """

    def __init__(self, tree: Tree, folder: str | os.PathLike[str] | None = None) -> None:
        super().__init__(folder)
        self._tree = tree

    def _record(self, type: ModuleType, name: str) -> dict[str, str] | None:  # noqa: A002
        try:
            found = self._tree.get(Module, _path(type, name))
            if found is None:
                return super()._record(type, name)
            return checked_record(msgspec.to_builtins(found[0]))
        except (RecordError, ValueError) as error:
            raise ModuleRegistryError(f"module {type}:{name}: {error}") from error

    def _names(self, type: ModuleType) -> list[str]:  # noqa: A002
        found = self._tree.children(nodes.MODULES)
        own = (text.partition(".")[2] for text in found if text.startswith(f"{type}."))
        return sorted({*own, *super()._names(type)})

    def _has(self, type: ModuleType, name: str) -> bool:  # noqa: A002
        return self._tree.stat(_path(type, name)) is not None or super()._has(type, name)

    def _check_free(self, type: ModuleType, name: str) -> None:  # noqa: A002
        try:
            super()._check_free(type, name)
        except ModuleRegistryError as error:
            if not LocalRegistry._has(self, type, name):  # noqa: SLF001 # its own parent's
                raise
            where = f"it is not a module of the cluster, but in the admin's folder {self._folder}"
            raise ModuleRegistryError(f"{error}: {where}; `storm-spark module delete` deletes it there") from None

    def _write(self, type: ModuleType, name: str, record: Mapping[str, str]) -> None:  # noqa: A002
        if self._tree.stat(nodes.MODULES) is None:
            self._tree.put(nodes.EMPTY, nodes.MODULES)
        try:
            self._tree.add(
                msgspec.convert({"version": RECORD_VERSION, **record}, Module), nodes.MODULES, f"{type}.{name}"
            )
        except ExistsError:
            raise ModuleRegistryError(f"there is already a module {type}:{name}") from None

    def _remove(self, type: ModuleType, name: str) -> None:  # noqa: A002
        if not self._tree.delete(_path(type, name)):
            super()._remove(type, name)


def _path(type: ModuleType, name: str) -> str:  # noqa: A002
    return f"{nodes.MODULES}/{type}.{name}"
