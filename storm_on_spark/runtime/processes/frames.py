"""Messages on a stream socket, as `multiprocessing.Connection` sends them: each as its length and its bytes.

A `Connection` takes two system calls to read a message and three to ask whether there is one, and blocks until a
message is sent in full. Here one call reads everything that has arrived, and what can't be sent at once is kept.
"""

from __future__ import annotations

import socket
import struct

_LENGTH = struct.Struct("!i")
_LONG_LENGTH = struct.Struct("!Q")
"""The length of a long message, which follows a length of -1."""
_MOST = 0x7FFFFFFF
_READ_BYTES = 1 << 16
_MOST_READS = 64
"""How often a socket is read before others get their turn."""


def framed(data: bytes) -> bytes:
    """Returns a message with its length in front, as it is sent."""
    if len(data) > _MOST:
        return _LENGTH.pack(-1) + _LONG_LENGTH.pack(len(data)) + data
    return _LENGTH.pack(len(data)) + data


class Frames:
    r"""Both directions of a socket, without blocking in either.

    Args:
        end: a stream socket.

    Example:
        >>> ours, theirs = socket.socketpair()
        >>> frames = Frames(ours)
        >>> theirs.sendall(framed(b"one") + framed(b"two")[:5])
        >>> frames.received(), frames.received(), frames.over
        ([b'one'], [], False)
        >>> frames.send(b"three"), theirs.recv(100)
        (True, b'\x00\x00\x00\x05three')
        >>> theirs.close()
        >>> frames.received(), frames.over
        ([], True)
        >>> ours.close()
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._came = bytearray()
        self._unsent = bytearray()
        #: Whether the other end is closed, or the connection broken.
        self.over = False

    def received(self) -> list[bytes]:
        """Returns the messages that have arrived in full."""
        came = self._came
        for _ in range(_MOST_READS):
            try:
                data = self._end.recv(_READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.over = True
                break
            came += data
            if len(data) < _READ_BYTES:
                break
        found, at = [], 0
        while len(came) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(came, at)
            begin = at + _LENGTH.size
            if size == -1:
                if len(came) - begin < _LONG_LENGTH.size:
                    break
                (size,) = _LONG_LENGTH.unpack_from(came, begin)
                begin += _LONG_LENGTH.size
            if len(came) - begin < size:
                break
            at = begin + size
            found.append(bytes(came[begin:at]))
        del came[:at]
        return found

    def send(self, data: bytes) -> bool:
        """Sends as much of a message as is possible now. Returns whether all is sent; if not, call `flush` later."""
        self._unsent += framed(data)
        return self.flush()

    def flush(self) -> bool:
        """Sends more of what was kept; returns whether nothing is left."""
        try:
            while self._unsent:
                sent = self._end.send(self._unsent, socket.MSG_DONTWAIT)
                del self._unsent[:sent]
        except BlockingIOError:
            return False
        except OSError:
            self.over = True
            self._unsent.clear()
        return True
