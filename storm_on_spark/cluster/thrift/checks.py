"""Checks that the bytes of a call are Thrift's binary protocol, before a library reads them.

The library trusts lengths: a list of 2,000,000,000 elements of no size would keep it busy.
Here every element costs a byte, and a call has a limited number of them.
"""

from __future__ import annotations

import struct
from typing import Final

from storm_on_spark.cluster.http.frames import FrameError

MOST_DEPTH: Final = 16
MOST_VALUES: Final = 100_000
"""Fields of structs and elements of lists and maps. A million tiny ones fit into a frame, and take seconds."""
_CALL: Final = 1
_VERSION: Final = 0x8001
_SIZES: Final = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_STRING: Final = 11
_STRUCT: Final = 12
_MAP: Final = 13
_LISTS: Final = (14, 15)
_MOST_NAME: Final = 100


class _Walk:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = MOST_VALUES

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        self.skip(size)
        found: int = struct.unpack_from(form, self._data, self._at - size)[0]
        return found

    def skip(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if size < 0 or self._at > len(self._data):
            raise FrameError(f"a call of {len(self._data):,} bytes has a value of {size:,} at byte {start:,}")
        return self._data[start : self._at]

    def count(self) -> range:
        """Returns the elements of a list or a map, by number."""
        found = range(self.number("!i"))
        self.take(len(found))
        return found

    def take(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise FrameError(f"a call has more than {MOST_VALUES:,} values")

    def value(self, kind: int, depth: int) -> None:
        if kind in _SIZES:
            self.skip(_SIZES[kind])
        elif kind == _STRING:
            self.skip(self.number("!i"))
        elif depth == MOST_DEPTH:
            raise FrameError(f"a call has values in more than {MOST_DEPTH} others")
        elif kind == _STRUCT:
            while field := self.number("!b"):
                self.skip(2)
                self.take(1)
                self.value(field, depth + 1)
        elif kind == _MAP:
            key, item = self.number("!b"), self.number("!b")
            for _ in self.count():
                self.value(key, depth + 1)
                self.value(item, depth + 1)
        elif kind in _LISTS:
            item = self.number("!b")
            for _ in self.count():
                self.value(item, depth + 1)
        else:
            raise FrameError(f"a call has a value of the unknown type {kind} before byte {self._at:,}")

    def end(self) -> None:
        if self._at != len(self._data):
            raise FrameError(f"a call ends at byte {self._at:,} of {len(self._data):,}")


def check_call(data: bytes) -> None:
    """Checks a message: a call, with or without version, whose arguments are whole.

    Raises:
        FrameError: it is something else.

    Example:
        >>> check_call(bytes.fromhex("80010001 00000001 61 00000007 00"))
        >>> check_call(b"GET / HTTP/1.1")
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.http.frames.FrameError: a call has a name of 1,195,725,856 bytes; at most 100 are allowed
    """
    walk = _Walk(data)
    head = walk.number("!i")
    versioned = head < 0
    if versioned and head >> 16 & 0xFFFF != _VERSION:
        raise FrameError(f"a call of an unknown version, {head & 0xFFFFFFFF:#x}")
    length = walk.number("!i") if versioned else head
    if not 0 <= length <= _MOST_NAME:
        raise FrameError(f"a call has a name of {length:,} bytes; at most {_MOST_NAME} are allowed")
    try:
        walk.skip(length).decode()
    except UnicodeDecodeError as error:
        raise FrameError("the name of a call is not UTF-8") from error
    kind = head & 0xFF if versioned else walk.number("!b")
    if kind != _CALL:
        raise FrameError(f"a message of type {kind}; only calls, type {_CALL}, are answered")
    walk.number("!i")
    walk.value(_STRUCT, 0)
    walk.end()
