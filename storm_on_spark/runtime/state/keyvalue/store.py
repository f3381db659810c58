"""What key-value state is kept in."""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """The state of one task in a micro-batch; see `StateAccess`."""

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, which may be none."""


class MemoryStore:
    """A store in this process, for a bolt under test.

    Args:
        values: what it holds, by name and index; changed in place. None for nothing yet.
    """

    def __init__(self, values: dict[tuple[str, int], bytes] | None = None) -> None:
        self.values: dict[tuple[str, int], bytes] = {} if values is None else values

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""
        return self.values.get((name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        self.values[name, index] = value

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, which may be none."""
        self.values.pop((name, index), None)


class WatchedStore:
    """A store that remembers when it failed.

    A bolt's code runs around each read. What it catches, or what is taken for its own error, must not be
    committed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        #: What it raised first.
        self.error: Exception | None = None

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""
        try:
            return self._store.get(name, index)
        except Exception as error:
            self.error = self.error or error
            raise

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        self._store.put(name, value, index)

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, which may be none."""
        self._store.remove(name, index)
