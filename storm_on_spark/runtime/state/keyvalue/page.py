"""The bytes of a page, and how single entries are found in them without reading the others.

A page is: format version, kind of keys, kind of values, whether some are deleted, each u8; number of entries, u32;
hashes, u32 each, ascending; the columns of keys and values; a byte for each entry that says whether it is deleted. A
column of integers is their width in bytes, u64, and the integers; one of texts or pickled values the offsets, u32 each,
and the bytes. All parts begin at a multiple of 8.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.state.keyvalue.hashes import Hashes
from storm_on_spark.runtime.state.keyvalue.rows import GONE, Column, Kind, Rows
from storm_on_spark.runtime.values import pickling

MISSING: Any = object()
"""Stands for the value of a key of which a page says nothing."""

_FORMAT = 1
_HEAD = struct.Struct("<BBBBI")
_WIDTH = struct.Struct("<Q")
_INTS: dict[int, Literal["b", "h", "i", "q"]] = {1: "b", 2: "h", 4: "i", 8: "q"}


def encode(rows: Rows) -> bytes:
    """Returns entries as a page."""
    some_gone = bool(rows.gone.any())
    parts = [_HEAD.pack(_FORMAT, rows.keys.kind, rows.values.kind, some_gone, len(rows))]
    parts += _padded(rows.hashes.tobytes())
    for column in (rows.keys, rows.values):
        for part in _parts_of(column):
            parts += _padded(part)
    if some_gone:
        parts += _padded(rows.gone.tobytes())
    return b"".join(parts)


def _padded(part: bytes) -> tuple[bytes, bytes]:
    return part, bytes(-len(part) % 8)


def _parts_of(column: Column) -> list[bytes]:
    if column.kind is Kind.INT:
        values = column.data.to_numpy()
        low, high = int(values.min()), int(values.max())
        width = next(width for width in _INTS if -(1 << 8 * width - 1) <= low and high < 1 << 8 * width - 1)
        return [_WIDTH.pack(width), values.astype(f"i{width}").tobytes()]
    if column.kind is Kind.FLOAT:
        return [column.data.to_numpy(zero_copy_only=False).tobytes()]
    _, offsets, data = column.data.buffers()
    first = column.data.offset
    bounds = np.frombuffer(offsets, np.int32)[first : first + len(column.data) + 1]
    start, end = int(bounds[0]), int(bounds[-1])
    content = b"" if data is None else memoryview(data)[start:end].tobytes()
    return [(bounds - bounds[0]).astype(np.uint32).tobytes(), content]


class Page:
    """A page, read in place.

    Raises:
        CheckpointError: it is of another format version, or shorter than it says.
    """

    __slots__ = ("_at", "_gone", "_keys", "_values", "data", "hashes", "size")

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEAD.size or data[0] != _FORMAT:
            raise CheckpointError(
                f"a page of key-value state begins with {data[:1]!r}; this release reads format version {_FORMAT}"
            )
        _, key_kind, value_kind, some_gone, self.size = _HEAD.unpack_from(data)
        self.data = data
        self._at = _HEAD.size
        self.hashes = self._next(4 * self.size).cast("I")
        self._keys = self._column(key_kind)
        self._values = self._column(value_kind)
        self._gone = self._next(self.size) if some_gone else None

    def _next(self, size: int) -> memoryview[int]:
        start, end = self._at, self._at + size
        if end > len(self.data):
            raise CheckpointError(f"a page of key-value state has {len(self.data)} bytes, not {end}")
        self._at = end + -end % 8
        return memoryview(self.data)[start:end]

    def _column(self, kind: int) -> _Ints | _Blobs:
        if kind == Kind.INT:
            (width,) = _WIDTH.unpack(self._next(_WIDTH.size))
            if width not in _INTS:
                raise CheckpointError(f"a page of key-value state has integers of {width} bytes")
            return _Ints(Kind.INT, self._next(width * self.size).cast(_INTS[width]))
        if kind == Kind.FLOAT:
            return _Ints(Kind.FLOAT, self._next(8 * self.size).cast("d"))
        if kind not in (Kind.TEXT, Kind.PICKLED):
            raise CheckpointError(f"a page of key-value state has a column of kind {kind}")
        offsets = self._next(4 * (self.size + 1)).cast("I")
        return _Blobs(Kind(kind), offsets, self._next(offsets[self.size]))

    def find(self, key: Any, hashed: int) -> Any:
        """Returns the value of `key`; `GONE` if it is deleted, `MISSING` if this page doesn't know it."""
        hashes = self.hashes
        place = bisect_left(hashes, hashed)
        while place < self.size and hashes[place] == hashed:
            known = self._keys[place]
            if known is key or known == key:
                return GONE if self._gone is not None and self._gone[place] else self._values[place]
            place += 1
        return MISSING

    def find_all(self, keys: list[Any], hashes: Hashes, found: dict[Any, Any]) -> list[int]:
        """Looks for keys, given with their hashes; adds to `found` what `find` returns for those that it knows.

        Returns:
            The indices of the others.
        """
        mine = np.frombuffer(self.hashes, np.uint32)
        places = np.searchsorted(mine, hashes)
        places[places == self.size] = 0
        equal = mine[places] == hashes
        hits = np.flatnonzero(equal)
        missing: list[int] = np.flatnonzero(~equal).tolist()
        places = places[hits]
        wanted = [keys[index] for index in hits.tolist()]
        values = self._values.take(places)
        if self._gone is not None:
            for index, place in enumerate(places.tolist()):
                if self._gone[place]:
                    values[index] = GONE
        known = self._keys.take(places)
        if known == wanted:
            found.update(zip(wanted, values, strict=True))
            return missing
        for index, key, candidate, value in zip(hits.tolist(), wanted, known, values, strict=True):
            if not (candidate is key or candidate == key):  # two keys of one hash
                value = self.find(key, int(hashes[index]))
            if value is MISSING:
                missing.append(index)
            else:
                found[key] = value
        missing.sort()
        return missing

    def rows(self) -> Rows:
        """Returns the entries."""
        gone = np.zeros(self.size, bool) if self._gone is None else np.frombuffer(self._gone, bool)
        return Rows(np.frombuffer(self.hashes, np.uint32), self._keys.column(), self._values.column(), gone)


class _Ints:
    """A column of numbers, in place."""

    __slots__ = ("_kind", "_numbers")

    def __init__(self, kind: Kind, numbers: memoryview[int] | memoryview[float]) -> None:
        self._kind, self._numbers = kind, numbers

    def __getitem__(self, place: int) -> Any:
        return self._numbers[place]

    def take(self, places: NDArray[np.int64]) -> list[Any]:
        values: list[Any] = np.asarray(self._numbers)[places].tolist()
        return values

    def column(self) -> Column:
        dtype = np.int64 if self._kind is Kind.INT else np.float64
        return Column(self._kind, pa.array(np.asarray(self._numbers).astype(dtype), from_pandas=False))


class _Blobs:
    """A column of texts or pickled values, in place."""

    __slots__ = ("_data", "_kind", "_offsets")

    def __init__(self, kind: Kind, offsets: memoryview[int], data: memoryview[int]) -> None:
        self._kind, self._offsets, self._data = kind, offsets, data

    def __getitem__(self, place: int) -> Any:
        blob = self._data[self._offsets[place] : self._offsets[place + 1]]
        return str(blob, "utf-8") if self._kind is Kind.TEXT else pickling.loads(blob)

    def take(self, places: NDArray[np.int64]) -> list[Any]:
        return [self[place] for place in places.tolist()]

    def column(self) -> Column:
        size = len(self._offsets) - 1
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
        return Column(self._kind, pa.Array.from_buffers(pa.binary(), size, buffers))
