"""Cuts the bytes of a connection into frames: pure, without I/O."""

from __future__ import annotations

from typing import Final

from storm_on_spark.cluster.errors import WireError

MOST_BYTES: Final = 10 * 1024 * 1024
"""Of a message by default (`pacemaker.thrift.message.size.max`)."""
_LENGTH: Final = 4


class Frames:
    r"""The frames of one direction of a connection.

    Never holds more than one frame and what came in with its end.

    Args:
        most_bytes: of a frame's content.

    Example:
        >>> frames = Frames()
        >>> frames.feed(b"\0\0\0\3ab"), frames.feed(b"c\0\0\0\1d")
        ([], [b'abc', b'd'])
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._held = bytearray()

    def allow(self, most_bytes: int) -> None:
        """Changes how large a frame may be, from the next one on."""
        self._most = most_bytes

    @property
    def held(self) -> int:
        """Bytes of a frame that has not come whole."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the content of each frame that is whole now.

        Args:
            data: what came in, in order.

        Raises:
            WireError: a frame's length is negative, or beyond the limit. The connection is of no use then.
        """
        if self._held:
            self._held += data
            # A large frame comes in many pieces: it is looked at again when it is whole, not copied for each piece.
            if len(self._held) < _LENGTH or len(self._held) < _LENGTH + self._size(self._held, 0):
                return []
            data = bytes(self._held)
            self._held.clear()
        found: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= _LENGTH:
            begin = at + _LENGTH
            stop = begin + self._size(data, at)
            if stop > end:
                break
            at = stop
            found.append(data[begin:stop])
        self._held += data[at:]
        return found

    def _size(self, data: bytes | bytearray, at: int) -> int:
        size = int.from_bytes(data[at : at + _LENGTH], "big", signed=True)
        if not 0 <= size <= self._most:
            raise WireError(f"a frame claims {size:,} bytes; 0 to {self._most:,} are allowed")
        return size
