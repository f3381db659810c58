from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from waiting import eventually

from storm_on_spark.testing.faults.connections import TcpProxy, expire_session


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that sends back what it gets; returns its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    acceptor.join()
    for thread in threads:
        thread.join()


def connected(proxy: TcpProxy) -> socket.socket:
    host, _, port = proxy.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def received(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (more := client.recv(65536)):
        data += more
    return bytes(data)


def test_everything_passes(echo: str) -> None:
    data = os.urandom(5_000_000)
    with TcpProxy(echo) as proxy, connected(proxy) as client:
        sender = threading.Thread(target=client.sendall, args=(data,))
        sender.start()
        assert received(client, len(data)) == data
        sender.join()
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""


def test_a_cut_line_is_silent_and_delivers_when_it_is_mended(echo: str) -> None:
    with TcpProxy(echo) as proxy, connected(proxy) as client:
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        proxy.cut()
        client.sendall(b"b")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        # Who connects meanwhile isn't refused, and hears nothing.
        with connected(proxy) as other:
            other.settimeout(0.1)
            other.sendall(b"c")
            with pytest.raises(TimeoutError):
                other.recv(1)
            proxy.mend()
            client.settimeout(10)
            other.settimeout(10)
            assert (client.recv(1), other.recv(1)) == (b"b", b"c")


def test_a_delay_is_one_of_both_directions(echo: str) -> None:
    with TcpProxy(echo) as proxy, connected(proxy) as client:
        proxy.delay(0.15)
        began = time.monotonic()
        client.sendall(b"a")
        assert client.recv(1) == b"a"
        assert time.monotonic() - began >= 0.3


def test_dropped_connections_end(echo: str) -> None:
    with TcpProxy(echo) as proxy:
        with connected(proxy) as client:
            client.sendall(b"a")
            assert client.recv(1) == b"a"
            proxy.drop()
            assert client.recv(1) == b""
        with connected(proxy) as client:
            client.sendall(b"b")
            assert client.recv(1) == b"b"


def test_a_session_expires_only_once(connect) -> None:
    session = connect()
    ended = expire_session(session)
    eventually(lambda: session.state == "CONNECTED" and session.session_id != ended)
    assert expire_session(session) != ended


def test_it_is_closed_also_when_its_thread_ends_before_it_is_poked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late:
        """The end at which it is poked: first its thread is, and has ended before the call that counts."""

        def __init__(self, real: socket.socket) -> None:
            self.real = real

        def send(self, data: bytes) -> int:
            sent = self.real.send(data)
            for thread in set(threading.enumerate()) - before:
                thread.join(60)
                assert not thread.is_alive()
            self.real.send(data)
            return sent

        def close(self) -> None:
            self.real.close()

    def pair() -> tuple[Any, socket.socket]:
        wake, woken = real_pair()
        return Late(wake), woken

    before, real_pair = set(threading.enumerate()), socket.socketpair
    monkeypatch.setattr(socket, "socketpair", pair)
    proxy = TcpProxy("127.0.0.1:1")
    proxy.close()
    assert set(threading.enumerate()) <= before
