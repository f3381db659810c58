"""Faults of a cluster's connections: a proxy that can be cut, a session that expires.

Servers to kill and to pause are `storm_on_spark.cluster.zookeeper.ZooKeeperServer` and `ZooKeeperEnsemble`.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from typing import Any, Final

from kazoo.protocol.serialization import CloseInstance, Connect

from storm_on_spark.cluster.zookeeper.session import ZooKeeperSession
from storm_on_spark.runtime.processes.closing import Closing

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 65536
_MOST_WAITING: Final = 1 << 20


class _Pipe:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.waiting: list[tuple[float, bytes]] = []
        """Chunks, and when they are due."""
        self.size = 0
        self.ended = False


class TcpProxy(Closing):
    """A proxy between clients and a server, whose line can be cut and slowed down.

    A cut line stays open and carries no data, as when a cable is pulled: neither side is told. Data sent meanwhile
    arrives when the line is mended, as in TCP.

    Args:
        target: `host:port` of the server.

    Example:
        >>> with TcpProxy(server.connect_string) as proxy:                      # doctest: +SKIP
        ...     settings = ZooKeeperSettings(proxy.address)
        ...     proxy.cut()
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server((_HOST, 0))
        self._listener.setblocking(False)
        self.address = f"{_HOST}:{self._listener.getsockname()[1]}"
        """The address for clients."""
        self._cut = False
        self._delay = 0.0
        self._pipes: list[_Pipe] = []
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._closing = self._drop = False
        self._thread = threading.Thread(target=self._run, name="tcp-proxy", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Stops forwarding data and accepting connections, until `mend`."""
        self._cut = True
        self._poke()

    def mend(self) -> None:
        """Forwards everything again, beginning with waiting data."""
        self._cut = False
        self._poke()

    def drop(self) -> None:
        """Breaks all connections; new ones are accepted unless the line is cut."""
        self._drop = True
        self._poke()

    def delay(self, seconds: float) -> None:
        """Delays everything by that long, in both directions."""
        self._delay = seconds
        self._poke()

    def close(self) -> None:
        """Closes the proxy and all connections."""
        self._closing = True
        self._poke()
        self._thread.join()
        # Not on the thread: it may see `_closing` and end before it is woken.
        self._woken.close()
        self._wake.close()

    def _poke(self) -> None:
        self._wake.send(b"\0")

    def _run(self) -> None:
        try:
            while not self._closing:
                self._turn()
        finally:
            self._end_all()
            self._listener.close()

    def _turn(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            now = time.monotonic()
            due: list[float] = []
            if not self._cut:
                selector.register(self._listener, selectors.EVENT_READ)
                for pipe in self._pipes:
                    events = {pipe.source: 0, pipe.sink: 0}
                    if not pipe.ended and pipe.size < _MOST_WAITING:
                        events[pipe.source] |= selectors.EVENT_READ
                    if pipe.waiting:
                        at = pipe.waiting[0][0]
                        if at <= now:
                            events[pipe.sink] |= selectors.EVENT_WRITE
                        else:
                            due.append(at - now)
                    for which, wanted in events.items():
                        self._want(selector, which, wanted)
            ready = {key.fileobj: mask for key, mask in selector.select(min(due, default=None))}
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                self._woken.recv(_CHUNK)
        if self._drop:
            self._drop = False
            self._end_all()
            return
        if self._listener in ready:
            self._accept()
        for pipe in list(self._pipes):
            self._carry(pipe, ready)

    @staticmethod
    def _want(selector: selectors.BaseSelector, which: socket.socket, events: int) -> None:
        if not events:
            return
        try:
            selector.modify(which, selector.get_key(which).events | events)
        except KeyError:
            selector.register(which, events)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(self._target, timeout=1)
            except OSError:
                client.close()
                return
            for end in (client, server):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pipes += [_Pipe(client, server), _Pipe(server, client)]

    def _carry(self, pipe: _Pipe, ready: dict[Any, int]) -> None:
        if pipe not in self._pipes:
            return
        try:
            if ready.get(pipe.source, 0) & selectors.EVENT_READ and not pipe.ended:
                data = pipe.source.recv(_CHUNK)
                pipe.ended = not data
                if data:
                    pipe.waiting.append((time.monotonic() + self._delay, data))
                    pipe.size += len(data)
            while pipe.waiting and pipe.waiting[0][0] <= time.monotonic():
                at, data = pipe.waiting[0]
                sent = pipe.sink.send(data)
                pipe.size -= sent
                if sent < len(data):
                    pipe.waiting[0] = (at, data[sent:])
                    break
                pipe.waiting.pop(0)
        except BlockingIOError:
            return
        except OSError:
            self._end(pipe)
            return
        if pipe.ended and not pipe.waiting:
            self._end(pipe)

    def _end(self, pipe: _Pipe) -> None:
        """Closes the connection that a pipe is half of."""
        ends = {pipe.source, pipe.sink}
        self._pipes = [other for other in self._pipes if {other.source, other.sink} != ends]
        for end in ends:
            end.close()

    def _end_all(self) -> None:
        while self._pipes:
            self._end(self._pipes[0])


def expire_session(session: ZooKeeperSession, timeout: float = 10) -> int:
    """Ends a ZooKeeper session for real: a second connection takes it over and closes it.

    The first connection learns of it when it reconnects, as after too long a partition.

    Args:
        session: a connected one.
        timeout: how long that may take, in seconds.

    Returns: The id of the session, once it has ended: its owner has been told, or the message is on its way.

    Raises:
        AssertionError: there is no session, or the server doesn't end it.
    """
    client_id = session.client.client_id
    assert client_id is not None, "the session is not connected"
    session_id, password = client_id
    connect = Connect(0, 0, round(session.settings.session_timeout_secs * 1000), session_id, password, False)
    host, _, port = session.settings.hosts.split(",")[0].rpartition(":")
    # Both requests at once: the owner is disconnected and must not reconnect between them.
    close = struct.pack(">ii", 1, CloseInstance.type)
    message = b"".join(struct.pack(">i", len(part)) + part for part in (bytes(connect.serialize()), close))
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(message)
        answer = bytearray()
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(_CHUNK):
                answer += data
    # A length, a protocol version, and the timeout: 0 or less if there is no such session.
    assert len(answer) >= 12, "the server did not answer"
    assert struct.unpack_from(">i", answer, 8)[0] > 0, "the session has ended before"
    return int(session_id)
