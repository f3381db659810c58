"""A folder of a store, as a store itself."""

from __future__ import annotations

from pathlib import Path

from storm_on_spark.runtime.storage.interface import Storage, StoredObject, checked


def within(storage: Storage, folder: str) -> Storage:
    """Returns the folder of `storage`: names begin there. Closing it closes nothing.

    Example:
        >>> from storm_on_spark.runtime.storage import LocalStorage
        >>> root = LocalStorage(folder)                                         # doctest: +SKIP
        >>> within(root, "outcomes").create("7.bin", b"")                       # doctest: +SKIP
        >>> root.list_folder("outcomes")                                               # doctest: +SKIP
        [StoredObject(name='outcomes/7.bin', size=0)]
    """
    return _Within(storage, checked(folder))


class _Within(Storage):
    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self.url = f"{storage.url}/{folder}"

    def create(self, name: str, data: bytes) -> None:
        self._storage.create(self._full(name), data)

    def put(self, name: str, data: bytes) -> None:
        self._storage.put(self._full(name), data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        return self._storage.read(self._full(name), start, length)

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        cut = len(self._folder) + 1
        found = self._storage.list_folder(self._full(folder) if folder else self._folder, deep=deep)
        return [StoredObject(one.name[cut:], one.size) for one in found]

    def delete(self, name: str) -> None:
        self._storage.delete(self._full(name))

    def delete_folder(self, folder: str) -> None:
        self._storage.delete_folder(self._full(folder))

    def local_path(self) -> Path | None:
        path = self._storage.local_path()
        return None if path is None else path / self._folder

    def _full(self, name: str) -> str:
        return f"{self._folder}/{name}"
