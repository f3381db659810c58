"""`KeyValueState` as a dict with a journal.

All values are in memory. What changed in a micro-batch is written as one entry; loading replays the entries in order.
When the changes written since then weigh as much as the whole, the whole is written anew, so that a put costs on
average at most two writes and loading reads at most twice the state, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.runtime import pickling
from storm_on_spark.runtime.texts import pack_column, unpack_column

_BASE, _CHANGES = b"\x03B", b"\x03C"
"""First bytes of an entry: format version 3, and what it is."""
_PART_KEYS = 50_000
"""Keys in one entry of the base."""
_LEAST_BYTES = 1 << 20
"""Changes are not compacted before they weigh this much."""

_ABSENT = object()

_PLAIN = (int, float, str, bytes, bool, type(None))
"""Values of these types can't be changed in place."""


class _Copy(NamedTuple):
    """A value as it was when the bolt got hold of it."""

    data: bytes


class JournaledState(KeyValueState):
    """A state that knows what has changed since it was last written."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        #: (key, value before, a copy of it or _ABSENT), since the last `take_changes`.
        self._journal: list[tuple[Any, Any]] = []
        #: Whether `get` copies what it hands out, so that `undo` also takes back what is changed in place.
        self._careful = False
        #: Keys whose values have been copied since the last mark.
        self._copied: set[Any] = set()
        self._base_bytes = 0
        self._changes_bytes = 0

    # --- for the bolt --------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""
        if self._careful:
            self._copy(key)
        return self._values.get(key, default)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""
        values = self._values
        self._journal.append((key, values.get(key, _ABSENT)))
        values[key] = value

    def delete(self, key: Any) -> Any:
        """Removes `key`; returns the value that it had, or None."""
        before = self._values.pop(key, _ABSENT)
        if before is _ABSENT:
            return None
        self._journal.append((key, before))
        return before

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all (key, value)."""
        return iter(self._values.items())

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    # --- for the runtime -------------------------------------------------------

    def mark(self) -> int:
        """Returns a mark for `undo`."""
        self._copied.clear()
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Takes back what was done since `mark`."""
        for key, before in reversed(self._journal[mark:]):
            if before is _ABSENT:
                self._values.pop(key, None)
            else:
                self._values[key] = pickling.loads(before.data) if isinstance(before, _Copy) else before
        del self._journal[mark:]
        self._copied.clear()

    def start_again(self, entries: Iterable[bytes]) -> None:
        """Takes back all that was done since the last `take_changes`, and prepares for more of the kind.

        `undo` alone would not do: a bolt that changes a value in place has changed it in the journal as well. From here
        on, until `take_changes`, values are copied before the bolt gets them.

        Args:
            entries: what was written so far.
        """
        self.load(entries)
        self._careful = True

    def _copy(self, key: Any) -> None:
        value = self._values.get(key, _ABSENT)
        if value is not _ABSENT and not isinstance(value, _PLAIN) and key not in self._copied:
            self._journal.append((key, _Copy(pickling.dumps(value))))
            self._copied.add(key)

    def take_changes(self) -> bytes | None:
        """Returns an entry with what has changed since the last call; None if nothing has."""
        self._careful = False
        if not self._journal:
            return None
        values = self._values
        touched = dict.fromkeys(map(itemgetter(0), self._journal))
        self._journal.clear()
        removed = [key for key in touched if key not in values]
        for key in removed:
            del touched[key]
        entry = _entry(_CHANGES, list(touched), list(map(values.__getitem__, touched)), removed)
        self._changes_bytes += len(entry)
        return entry

    @property
    def wants_compaction(self) -> bool:
        """Whether the whole should be written anew in place of all entries."""
        return self._changes_bytes > max(_LEAST_BYTES, self._base_bytes)

    def compact(self) -> list[bytes]:
        """Returns entries that hold the whole."""
        items = iter(self._values.items())
        entries = []
        while part := list(islice(items, _PART_KEYS)):
            entries.append(_entry(_BASE, [key for key, _ in part], [value for _, value in part], []))
        self._base_bytes, self._changes_bytes = sum(map(len, entries)), 0
        return entries

    def load(self, entries: Iterable[bytes]) -> None:
        """Replaces the state by what the entries say.

        Raises:
            CheckpointError: an entry has another format version.
        """
        self._values.clear()
        self._journal.clear()
        self._base_bytes = self._changes_bytes = 0
        self.add(entries)

    def add(self, entries: Iterable[bytes]) -> None:
        """Does what later entries say.

        Raises:
            CheckpointError: an entry has another format version.
        """
        for entry in entries:
            kind = entry[:2]
            if kind == _BASE:
                self._base_bytes += len(entry)
            elif kind == _CHANGES:
                self._changes_bytes += len(entry)
            else:
                raise CheckpointError(f"an entry of key-value state begins with {kind!r}; this release reads version 3")
            size, keys, values, removed = pickling.loads(memoryview(entry)[2:])
            self._values.update(zip(unpack_column(keys, size), unpack_column(values, size), strict=True))
            for key in removed:
                self._values.pop(key, None)


def _entry(kind: bytes, keys: list[Any], values: list[Any], removed: list[Any]) -> bytes:
    """Returns an entry: keys and values each as a column, for a pair of each takes pickle three times as long."""
    return kind + pickling.dumps((len(keys), pack_column(keys), pack_column(values), removed))
