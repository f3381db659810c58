"""Entries of the journal: what changed in a micro-batch, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.codec.integers import PackedInts, pack_ints, unpack_ints
from storm_on_spark.runtime.state.keyvalue.store import Store
from storm_on_spark.runtime.values import pickling

ENTRIES = "entries"
"""Name of the journal in the state store."""
BASE, CHANGES = b"\x04B", b"\x04C"
"""First bytes of an entry: format version 4, and whether it starts a rewritten journal or was appended."""
_MOST_KEYS = 8192
"""Keys in one entry. Spark's state store takes ten times as long for a byte of a value of 1 MB as of one of 64 kB."""


class Entry(NamedTuple):
    """What an entry says: first some keys are removed, then others set."""

    kind: bytes
    removed: list[Any]
    keys: list[Any]
    values: list[Any]


def pack(kind: bytes, keys: Sequence[Any], values: Sequence[Any], removed: Sequence[Any]) -> list[bytes]:
    """Returns entries.

    Args:
        kind: `BASE` or `CHANGES`.
        keys: the keys that are set.
        values: theirs.
        removed: keys that are removed before: one that is also set moves to the end.
    """
    entries = [_packed(kind, [], [], removed[at : at + _MOST_KEYS]) for at in range(0, len(removed), _MOST_KEYS)]
    for at in range(0, len(keys), _MOST_KEYS):
        entries.append(_packed(kind, keys[at : at + _MOST_KEYS], values[at : at + _MOST_KEYS], []))
    return entries


def _packed(kind: bytes, keys: Sequence[Any], values: Sequence[Any], removed: Sequence[Any]) -> bytes:
    """Returns an entry: keys and values each as a column, for a pair of each takes pickle three times as long."""
    return kind + pickling.dumps((len(keys), pack_values(list(keys)), pack_values(list(values)), list(removed)))


def pack_values(column: list[Any]) -> list[Any] | PackedInts:
    """Returns a column of keys or values as it is pickled: integers as few bytes."""
    ints = pack_ints(column) if set(map(type, column)) == {int} else None
    return column if ints is None else ints


def unpack_values(packed: list[Any] | PackedInts, size: int) -> list[Any]:
    """Returns the keys or values of a column.

    Raises:
        CheckpointError: it is damaged.
    """
    return packed if isinstance(packed, list) else unpack_ints(packed, size)


def unpack(entries: Iterable[bytes]) -> Iterator[tuple[Entry, int]]:
    """Yields what each entry says, and its bytes.

    Raises:
        CheckpointError: an entry has another format version.
    """
    for data in entries:
        kind = data[:2]
        if kind[:1] != BASE[:1]:
            raise CheckpointError(other_format("an entry of key-value state", kind[0] if kind else None, BASE[0]))
        if kind not in (BASE, CHANGES):
            raise CheckpointError(f"an entry of key-value state is damaged: it begins with {kind!r}")
        size, keys, values, removed = pickling.loads(memoryview(data)[2:])
        yield Entry(kind, removed, unpack_values(keys, size), unpack_values(values, size)), len(data)


def entries(store: Store, first: int, end: int) -> Iterator[bytes]:
    """Yields entries as they are in the state store."""
    for number in range(first, end):
        entry = store.get(ENTRIES, number)
        assert entry is not None, f"entry {number} of {end} is missing"
        yield entry
