"""Which pages there are.

The hashes, from 0 to 2**32, are cut into buckets, and a bucket has a few pages, the newest first, as levels of a
log-structured merge tree (O'Neil et al. 1996). A bucket that grows is cut in two or more; no other bucket is touched by
that. Buckets are kept in 64 parts of equal width. A part is written as one record, when a page of it has changed; a
header says of each part which version counts.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.state.keyvalue.hashes import Hashes

PARTS = 64
WIDTH = (1 << 32) // PARTS
"""Hashes of a part."""

_FORMAT = 1
_HEAD = struct.Struct("<BI")
_BUCKET = struct.Struct("<IB")
_PAGE = struct.Struct("<IQII")
_HEADER = struct.Struct("<BQI")
_STAMP = struct.Struct("<Q")


class PageRef(NamedTuple):
    """A page in the state store.

    Args:
        slot: the number under which it is stored; used again when the page is written again.
        stamp: random; distinguishes what is stored from what was before, or would be after a failed attempt.
        rows: entries.
        size: bytes.
    """

    slot: int
    stamp: int
    rows: int
    size: int


@dataclass
class Part:
    """The buckets of a part: where each begins, and its pages, newest first."""

    lows: list[int]
    pages: list[list[PageRef]]

    def bucket(self, hashed: int) -> list[PageRef]:
        """Returns the pages that a hash may be in."""
        return self.pages[bisect_right(self.lows, hashed) - 1]

    def cuts(self, hashes: Hashes, start: int, end: int) -> tuple[list[int], list[int]]:
        """Returns where in `hashes[start:end]`, which are ascending and in this part, each bucket begins and ends."""
        cuts = (np.searchsorted(hashes[start:end], np.array(self.lows[1:], np.uint32)) + start).tolist()
        return [start, *cuts], [*cuts, end]

    def dump(self) -> bytes:
        """Returns the part's record."""
        parts = [_HEAD.pack(_FORMAT, len(self.lows))]
        for low, pages in zip(self.lows, self.pages, strict=True):
            parts.append(_BUCKET.pack(low, len(pages)))
            parts += [_PAGE.pack(*page) for page in pages]
        return b"".join(parts)

    @classmethod
    def load(cls, record: bytes) -> Part:
        """Returns the part in a record.

        Raises:
            CheckpointError: it is of another format version, or damaged.
        """
        try:
            version, size = _HEAD.unpack_from(record)
            if version != _FORMAT:
                raise CheckpointError(other_format("a directory of key-value state", version, _FORMAT))
            lows, buckets, at = [], [], _HEAD.size
            for _ in range(size):
                low, pages = _BUCKET.unpack_from(record, at)
                at += _BUCKET.size
                lows.append(low)
                buckets.append([PageRef(*_PAGE.unpack_from(record, at + i * _PAGE.size)) for i in range(pages)])
                at += pages * _PAGE.size
        except struct.error as error:
            raise CheckpointError(f"a directory of key-value state is damaged: {error}") from error
        if at != len(record) or not lows:
            raise CheckpointError(f"a directory of key-value state has {len(record)} bytes, not {at}")
        return cls(lows, buckets)


@dataclass
class Header:
    """What is read first: how many keys there are, how many slots were ever used, and the stamps of the parts."""

    keys: int = 0
    slots: int = 0
    stamps: list[int] = field(default_factory=lambda: [0] * PARTS)

    def dump(self) -> bytes:
        """Returns the record."""
        return _HEADER.pack(_FORMAT, self.keys, self.slots) + b"".join(map(_STAMP.pack, self.stamps))

    @classmethod
    def load(cls, record: bytes) -> Header:
        """Returns the header in a record.

        Raises:
            CheckpointError: it is of another format version, or damaged.
        """
        if record and record[0] != _FORMAT:
            raise CheckpointError(other_format("the header of key-value state", record[0], _FORMAT))
        if len(record) != _HEADER.size + PARTS * _STAMP.size:
            raise CheckpointError(f"the header of key-value state is damaged: it has {len(record)} bytes")
        _, keys, slots = _HEADER.unpack_from(record)
        return cls(keys, slots, [stamp for (stamp,) in _STAMP.iter_unpack(record[_HEADER.size :])])


def empty_part(number: int) -> Part:
    """Returns a part with one bucket that has no pages."""
    return Part([number * WIDTH], [[]])


def slots_of(parts: list[Part]) -> Iterator[int]:
    """Yields the slots in use."""
    for part in parts:
        for pages in part.pages:
            for page in pages:
                yield page.slot
