"""Frames as Thrift's framed transport has them: four bytes of length, then as many bytes. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

_LENGTH: Final = struct.Struct("!i")
FIRST_BYTE: Final = b"\0"
"""Of a frame with fewer than 2**24 bytes. No HTTP request begins with it."""
MOST_BYTES: Final = (1 << 24) - 1


LOGIN_BYTE: Final = b"\1"
"""Of a login, where one comes before the frames."""


class FrameError(Exception):
    """What came is not a frame or a message; the connection ends."""


class LoginError(FrameError):
    """A login is refused; the connection ends.

    Args:
        why: for the log.
        answer: bytes for the client.
    """

    def __init__(self, why: str, answer: bytes) -> None:
        super().__init__(why)
        self.answer = answer


class FrameLogin(Protocol):
    """What comes before the frames of one connection."""

    @property
    def user(self) -> str | None:
        """Name of the client; None until it has logged in."""

    @property
    def rest(self) -> bytes:
        """What came after the login."""

    def feed(self, data: bytes) -> bytes:
        """Takes bytes and returns what to answer.

        Raises:
            LoginError: the login is refused.
        """


@dataclass(frozen=True)
class FrameService:
    """What answers frames.

    Args:
        answer: takes a frame and who logged in (None without a login), and returns a frame; runs on its own thread. It
            raises `FrameError` to hang up. With `on_loop` it runs on the server's event loop, and may return what waits
            for the answer, which is cancelled once the client is gone.
        limit: most bytes of a frame.
        threads: most frames that are answered at the same time.
        login: begins a login; None if connections begin with a frame.
        on_loop: whether answers wait for something, so that each would keep a thread.
    """

    answer: Callable[[bytes, str | None], bytes | Awaitable[bytes]]
    limit: int
    threads: int
    login: Callable[[], FrameLogin] | None = None
    on_loop: bool = False


class FrameReader:
    """The bytes of a connection as frames.

    Args:
        limit: most bytes of a frame.

    Example:
        >>> reader = FrameReader(limit=10)
        >>> reader.feed(framed(b"one") + bytes([0, 0]))
        >>> reader.next(), reader.next(), reader.begun
        (b'one', None, True)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()

    @property
    def begun(self) -> bool:
        """Whether a part of a frame has come."""
        return bool(self._bytes)

    @property
    def full(self) -> bool:
        """Whether more than a whole frame has come."""
        return len(self._bytes) > self._limit

    def feed(self, data: bytes) -> None:
        """Takes bytes in."""
        self._bytes += data

    def next(self) -> bytes | None:
        """Returns the next frame; None until it is whole.

        Raises:
            FrameError: its length is negative, zero or above the limit.
        """
        if len(self._bytes) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes)
        if not 0 < length <= self._limit:
            raise FrameError(f"a frame has 1 to {self._limit:,} bytes, and this one {length:,}")
        end = _LENGTH.size + length
        if len(self._bytes) < end:
            return None
        frame = bytes(self._bytes[_LENGTH.size : end])
        del self._bytes[:end]
        return frame


def framed(message: bytes) -> bytes:
    r"""Returns a message as a frame.

    Example:
        >>> framed(b"one")
        b'\x00\x00\x00\x03one'
    """
    return _LENGTH.pack(len(message)) + message
