"""Stores with faults: calls that fail, that take effect and still fail, or that take long."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from storm_on_spark.runtime.storage import Storage, StoredObject

T = TypeVar("T")


class Fault(Enum):
    """The fate of one call."""

    REFUSED = "refused"
    """It fails and has no effect."""
    ANSWER_LOST = "answer lost"
    """It takes effect and fails."""


@dataclass(frozen=True)
class Call:
    """A call of a store's method."""

    number: int
    """From 0, over all methods."""
    method: str
    name: str
    """The object's, or the folder's."""


class FaultyStorage(Storage):
    """A store in front of another one that has faults.

    Args:
        inner: the store with the objects.
        faults: returns the fault of a call; None for no fault. It may wait, to make the call slow.

    Example:
        >>> def first_write_fails(call):
        ...     return Fault.REFUSED if call.number == 0 else None
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from storm_on_spark.runtime.storage import LocalStorage
        >>> storage = FaultyStorage(LocalStorage(Path(mkdtemp())), first_write_fails)
        >>> storage.put("a", b"1")
        Traceback (most recent call last):
        ...
        OSError: [Errno 5] injected: put refused: 'a'
        >>> storage.put("a", b"1")
        >>> storage.read("a"), storage.injected
        (b'1', [Call(number=0, method='put', name='a')])
    """

    def __init__(self, inner: Storage, faults: Callable[[Call], Fault | None]) -> None:
        self._inner = inner
        self._faults = faults
        self._lock = threading.Lock()
        self.url = inner.url
        self.calls: list[Call] = []
        """All calls so far."""
        self.injected: list[Call] = []
        """The calls that had a fault."""

    def create(self, name: str, data: bytes) -> None:
        """Makes an object, or not."""
        self._call("create", name, lambda: self._inner.create(name, data))

    def put(self, name: str, data: bytes) -> None:
        """Makes or replaces an object, or not."""
        self._call("put", name, lambda: self._inner.put(name, data))

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Returns bytes of an object, or not."""
        return self._call("read", name, lambda: self._inner.read(name, start, length))

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        """Returns the objects of a folder, or not."""
        return self._call("list_folder", folder, lambda: self._inner.list_folder(folder, deep=deep))

    def delete(self, name: str) -> None:
        """Deletes an object, or not."""
        self._call("delete", name, lambda: self._inner.delete(name))

    def delete_folder(self, folder: str) -> None:
        """Deletes the objects of a folder, or not."""
        self._call("delete_folder", folder, lambda: self._inner.delete_folder(folder))

    def local_path(self) -> Path | None:
        """Returns None: bypassing this store would bypass its faults."""
        return None

    def close(self) -> None:
        """Closes the inner store."""
        self._inner.close()

    def _call(self, method: str, name: str, work: Callable[[], T]) -> T:
        with self._lock:
            call = Call(len(self.calls), method, name)
            self.calls.append(call)
        fault = self._faults(call)
        if fault is not None:
            with self._lock:
                self.injected.append(call)
        if fault is Fault.REFUSED:
            raise OSError(errno.EIO, f"injected: {method} {fault.value}", name)
        result = work()
        if fault is Fault.ANSWER_LOST:
            raise OSError(errno.EIO, f"injected: {method}'s {fault.value}", name)
        return result
