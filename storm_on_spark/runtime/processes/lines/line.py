"""An authenticated connection between the driver's machine and a process on another one, called a host.

Both sides prove that they know the secret of the run before either reads anything else, and each message has a code
that only they can make. So messages may be unpickled: no other process can write, change, repeat or drop one.
They are not encrypted, as Spark's own are not unless its configuration says so.

Little endian. The host sends magic and 16 random bytes; the driver answers with 16 random bytes and its proof; the host
sends its proof. Then each message is its length (u32), an HMAC-SHA256 of its number (u64) and its bytes, and its bytes.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct

MAX_BYTES = 1 << 30
"""The longest message: the first one to a host has the code of all components, or the state of tasks."""
SECRET_BYTES = 32
"""The length of a run's secret."""
_MAGIC = b"SOSHOST1"
_NONCE_BYTES = 16
_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_MAC_BYTES = 32
_BLOCK = 1 << 20
DEAD_SECS = 30
"""Time without an answer from the other machine after which a connection counts as broken, unless it says otherwise."""


class LineError(OSError):
    """The other side is not part of this run, or speaks another protocol."""


class Line:
    """One end of an authenticated connection. Only one thread may send at a time.

    Args:
        connection: the socket.
        secret: of the run.
        nonces: both sides' random bytes, the host's first.
        of_driver: whether this is the driver's end.
    """

    def __init__(self, connection: socket.socket, secret: bytes, nonces: bytes, *, of_driver: bool) -> None:
        self._socket = connection
        to_host, to_driver = (_mac(secret, label + nonces) for label in (b"to host", b"to driver"))
        self._send_key, self._receive_key = (to_host, to_driver) if of_driver else (to_driver, to_host)
        self._sent = self._received = 0
        self.bytes_sent = self.bytes_received = 0
        """So many bytes went over it."""

    def fileno(self) -> int:
        """Returns the socket's descriptor."""
        return self._socket.fileno()

    def send_bytes(self, data: bytes, /) -> None:
        """Sends a message.

        Raises:
            LineError: it is too long.
            OSError: the connection is broken.
        """
        if len(data) > MAX_BYTES:
            raise LineError(f"a message has {len(data)} bytes; allowed are {MAX_BYTES}")
        head = _LENGTH.pack(len(data)) + _mac(self._send_key, _NUMBER.pack(self._sent) + data)
        self._sent += 1
        self.bytes_sent += len(head) + len(data)
        self._socket.sendall(head + data)

    def recv_bytes(self, limit: int = MAX_BYTES) -> bytes:
        """Returns the next message.

        Args:
            limit: the most bytes that it may have.

        Raises:
            EOFError: the other side closed the connection.
            LineError: it is too long, or it was altered on the way.
            OSError: the connection is broken.
        """
        head = _exactly(self._socket, _LENGTH.size + _MAC_BYTES)
        (length,) = _LENGTH.unpack_from(head)
        if length > limit:
            raise LineError(f"a message has {length} bytes; allowed are {limit}")
        data = _exactly(self._socket, length)
        expected = _mac(self._receive_key, _NUMBER.pack(self._received) + data)
        if not hmac.compare_digest(head[_LENGTH.size :], expected):
            raise LineError("a message was changed on its way, or does not come from the other side")
        self._received += 1
        self.bytes_received += len(head) + length
        return data

    def settimeout(self, seconds: float | None) -> None:
        """Sets the timeout of each call. None waits as long as the other machine answers."""
        self._socket.settimeout(seconds)

    def hang_up(self) -> None:
        """Ends the connection, including a pending `recv_bytes` in another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection and closes the socket; no other thread may use it any more."""
        self.hang_up()
        self._socket.close()


def call_driver(connection: socket.socket, secret: bytes) -> Line:
    """Authenticates this host to the driver, and the driver to this host.

    Raises:
        LineError: the other side is not the driver of this run.
        EOFError: it closed the connection, because it does not accept this host.
        OSError: the connection is broken.
    """
    mine = secrets.token_bytes(_NONCE_BYTES)
    connection.sendall(_MAGIC + mine)
    answer = _exactly(connection, _NONCE_BYTES + _MAC_BYTES)
    nonces = mine + answer[:_NONCE_BYTES]
    if not hmac.compare_digest(answer[_NONCE_BYTES:], _mac(secret, b"driver" + nonces)):
        raise LineError("what listens there is not the driver of this run")
    connection.sendall(_mac(secret, b"host" + nonces))
    return Line(connection, secret, nonces, of_driver=False)


def answer_host(connection: socket.socket, secret: bytes) -> Line:
    """The driver's side of `call_driver`.

    Raises:
        LineError: the caller does not know the secret.
        EOFError: it closed the connection.
        OSError: the connection is broken.
    """
    greeting = _exactly(connection, len(_MAGIC) + _NONCE_BYTES)
    if greeting[: len(_MAGIC)] != _MAGIC:
        raise LineError("the caller is not a process of this release")
    mine = secrets.token_bytes(_NONCE_BYTES)
    nonces = greeting[len(_MAGIC) :] + mine
    connection.sendall(mine + _mac(secret, b"driver" + nonces))
    if not hmac.compare_digest(_exactly(connection, _MAC_BYTES), _mac(secret, b"host" + nonces)):
        raise LineError("the caller does not know the secret of this run")
    return Line(connection, secret, nonces, of_driver=True)


def notice_loss(connection: socket.socket, secs: int = DEAD_SECS) -> None:
    """Makes the kernel end a connection whose peer no longer answers, and send without delay.

    Args:
        connection: the socket.
        secs: how long the other machine may be silent.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": secs // 3,
        "TCP_KEEPINTVL": secs // 6,
        "TCP_KEEPCNT": 4,
        # Also while something waits to be sent, or to be read over there.
        "TCP_USER_TIMEOUT": 1000 * secs,
    }
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _exactly(connection: socket.socket, length: int) -> bytes:
    # Reads in blocks, so that a false length can't allocate memory.
    blocks: list[bytes] = []
    while length:
        block = connection.recv(min(length, _BLOCK))
        if not block:
            raise EOFError
        blocks.append(block)
        length -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)
