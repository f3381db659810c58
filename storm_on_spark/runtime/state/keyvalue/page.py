"""The bytes of a page, and how single entries are found in them without reading the others.

A page is: format version, kind of keys, kind of values, flags, each u8; number of entries, u32; hashes, u32 each,
ascending, unless they follow from keys that are integers; the columns of keys and values; a byte for each entry that
says whether it is deleted, if some are. All parts begin at a multiple of 8.

A column of integers is their width in bytes and the number of large ones, u64 each; the integers, the lowest of the
width for each large one; places and values of the large ones, u32 and i64. So a few large counts don't widen all. A
column of texts or pickled values is the offsets, u32 each, and the bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.state.keyvalue.hashes import Hashes, are_small, hash_of, hashes_of_ints
from storm_on_spark.runtime.state.keyvalue.rows import GONE, Column, Kind, Rows
from storm_on_spark.runtime.values import pickling

MISSING: Any = object()
"""Stands for the value of a key of which a page says nothing."""

_FORMAT = 2
_HEAD = struct.Struct("<BBBBI")
_WIDTH_AND_LARGE = struct.Struct("<QQ")
_WIDTHS = (1, 2, 4, 8)
_LARGE_BYTES = 12
"""What a large integer takes beside its place in the column."""
_SOME_GONE, _NO_HASHES = 1, 2
"""Flags."""


def encode(rows: Rows) -> bytes:
    """Returns entries as a page."""
    some_gone = bool(rows.gone.any())
    no_hashes = rows.keys.kind is Kind.INT and are_small(rows.keys.data.to_numpy())
    flags = some_gone * _SOME_GONE | no_hashes * _NO_HASHES
    parts = [_HEAD.pack(_FORMAT, rows.keys.kind, rows.values.kind, flags, len(rows))]
    if not no_hashes:
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
        return _parts_of_ints(column.data.to_numpy())
    if column.kind is Kind.FLOAT:
        return [column.data.to_numpy(zero_copy_only=False).tobytes()]
    _, offsets, data = column.data.buffers()
    first = column.data.offset
    bounds = np.frombuffer(offsets, np.int32)[first : first + len(column.data) + 1]
    start, end = int(bounds[0]), int(bounds[-1])
    content = b"" if data is None else memoryview(data)[start:end].tobytes()
    return [(bounds - bounds[0]).astype(np.uint32).tobytes(), content]


def _parts_of_ints(numbers: NDArray[np.int64]) -> list[bytes]:
    # What is above 127 as an unsigned number, or its complement if it is below zero, takes more than a byte.
    magnitudes = (numbers ^ (numbers >> 63)).view(np.uint64)
    width, size = 8, 8 * len(numbers)
    for narrower in (1, 2, 4):
        # The lowest number of a width stands for a large one.
        large = int(np.count_nonzero(magnitudes >= (1 << 8 * narrower - 1) - 1))
        if narrower * len(numbers) + _LARGE_BYTES * large < size:
            width, size = narrower, narrower * len(numbers) + _LARGE_BYTES * large
    if width == 8:
        return [_WIDTH_AND_LARGE.pack(8, 0), numbers.tobytes()]
    places = np.flatnonzero(magnitudes >= (1 << 8 * width - 1) - 1)
    narrow = numbers.astype(f"i{width}")
    narrow[places] = -(1 << 8 * width - 1)
    parts = [_WIDTH_AND_LARGE.pack(width, len(places)), narrow.tobytes()]
    return [*parts, places.astype(np.uint32).tobytes(), numbers[places].tobytes()] if len(places) else parts


class Page:
    """A page, read in place.

    Raises:
        CheckpointError: it is of another format version, or shorter than it says.
    """

    __slots__ = ("_at", "_gone", "_hashes", "_keys", "_values", "data", "size")

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEAD.size:
            raise CheckpointError(f"a page of key-value state is damaged: it has {len(data)} bytes")
        if data[0] != _FORMAT:
            raise CheckpointError(other_format("a page of key-value state", data[0], _FORMAT))
        _, key_kind, value_kind, flags, self.size = _HEAD.unpack_from(data)
        self.data = data
        self._at = _HEAD.size
        no_hashes = bool(flags & _NO_HASHES)
        if no_hashes and key_kind != Kind.INT:
            raise CheckpointError(f"a page of key-value state has no hashes for keys of kind {key_kind}")
        self._hashes = None if no_hashes else self._next(4 * self.size).cast("I")
        self._keys = self._column(key_kind)
        self._values = self._column(value_kind)
        self._gone = self._next(self.size) if flags & _SOME_GONE else None

    def _next(self, size: int) -> memoryview[int]:
        start, end = self._at, self._at + size
        if end > len(self.data):
            raise CheckpointError(f"a page of key-value state has {len(self.data)} bytes, not {end}")
        self._at = end + -end % 8
        return memoryview(self.data)[start:end]

    def _column(self, kind: int) -> _Ints | _Floats | _Blobs:
        if kind == Kind.INT:
            return self._ints()
        if kind == Kind.FLOAT:
            return _Floats(np.frombuffer(self._next(8 * self.size), np.float64))
        if kind not in (Kind.TEXT, Kind.PICKLED):
            raise CheckpointError(f"a page of key-value state has a column of kind {kind}")
        offsets = self._next(4 * (self.size + 1)).cast("I")
        return _Blobs(Kind(kind), offsets, self._next(offsets[self.size]))

    def _ints(self) -> _Ints:
        width, large = _WIDTH_AND_LARGE.unpack(self._next(_WIDTH_AND_LARGE.size))
        if width not in _WIDTHS:
            raise CheckpointError(f"a page of key-value state has integers of {width} bytes")
        numbers = np.frombuffer(self._next(width * self.size), f"i{width}")
        if not large:
            return _Ints(numbers)
        places = np.frombuffer(self._next(4 * large), np.uint32)
        return _Ints(numbers, places, np.frombuffer(self._next(8 * large), np.int64))

    def hashes(self) -> Hashes:
        """Returns the hashes of all entries."""
        if self._hashes is not None:
            return np.frombuffer(self._hashes, np.uint32)
        assert isinstance(self._keys, _Ints)
        return hashes_of_ints(self._keys.all())

    def find(self, key: Any, hashed: int) -> Any:
        """Returns the value of `key`; `GONE` if it is deleted, `MISSING` if this page doesn't know it."""
        hashes = self._hashes
        if hashes is None:
            numbers = self._keys
            place = bisect_left(range(self.size), hashed, key=lambda place: hash_of(numbers[place]))
        else:
            place = bisect_left(hashes, hashed)
        while place < self.size and (hash_of(self._keys[place]) if hashes is None else hashes[place]) == hashed:
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
        mine = self.hashes()
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

    def find_ints(
        self, keys: NDArray[np.int64], hashes: Hashes
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.intp]] | None:
        """Looks for integers, given with their hashes.

        Returns:
            The indices of those that this page knows, their values, and the indices of the others; None if it takes
            `find_all`, as keys or values are not all integers, or some are deleted.
        """
        if not isinstance(self._keys, _Ints) or not isinstance(self._values, _Ints) or self._gone is not None:
            return None
        mine = self.hashes()
        places = mine.searchsorted(hashes)
        places[places == self.size] = 0
        known = self._keys.at(places) == keys
        others = np.flatnonzero(~known)
        if len(others) and bool((mine[places[others]] == hashes[others]).any()):
            return None  # two keys of one hash
        hits = np.flatnonzero(known)
        return hits, self._values.at(places[hits]), others

    def rows(self) -> Rows:
        """Returns the entries."""
        gone = np.zeros(self.size, bool) if self._gone is None else np.frombuffer(self._gone, bool)
        return Rows(self.hashes(), self._keys.column(), self._values.column(), gone)


class _Ints:
    """A column of integers, in place."""

    __slots__ = ("_large", "_numbers", "_places")

    def __init__(
        self,
        numbers: NDArray[np.signedinteger[Any]],
        places: NDArray[np.uint32] | None = None,
        large: NDArray[np.int64] | None = None,
    ) -> None:
        self._numbers = numbers
        #: Places and values of the large ones.
        self._places, self._large = places, large

    def __getitem__(self, place: int) -> int:
        if self._places is not None and self._large is not None:
            found = int(self._places.searchsorted(place))
            if found < len(self._places) and self._places[found] == place:
                return int(self._large[found])
        return int(self._numbers[place])

    def at(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Returns the integers at some places."""
        numbers = self._numbers[places]
        if self._places is None or self._large is None:
            return numbers.astype(np.int64, copy=False)
        marked = np.flatnonzero(numbers == np.iinfo(numbers.dtype).min)
        numbers = numbers.astype(np.int64)
        numbers[marked] = self._large[self._places.searchsorted(places[marked])]
        return numbers

    def take(self, places: NDArray[np.intp]) -> list[Any]:
        values: list[Any] = self.at(places).tolist()
        return values

    def all(self) -> NDArray[np.signedinteger[Any]]:
        """Returns all of them."""
        if self._places is None or self._large is None:
            return self._numbers
        numbers = self._numbers.astype(np.int64)
        numbers[self._places] = self._large
        return numbers

    def column(self) -> Column:
        return Column(Kind.INT, pa.array(self.all().astype(np.int64, copy=False)))


class _Floats:
    """A column of floats, in place."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers = numbers

    def __getitem__(self, place: int) -> float:
        return float(self._numbers[place])

    def take(self, places: NDArray[np.intp]) -> list[Any]:
        values: list[Any] = self._numbers[places].tolist()
        return values

    def column(self) -> Column:
        return Column(Kind.FLOAT, pa.array(self._numbers, from_pandas=False))


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
