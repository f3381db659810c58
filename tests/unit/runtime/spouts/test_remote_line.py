"""The connection between the driver and a spout host: who may talk, and that nobody changes what is said."""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import eventually

from storm_on_spark.runtime.processes.lines.line import Line, LineError, answer_host, call_driver
from storm_on_spark.runtime.processes.lines.listener import Hello, LineListener, listen_at
from storm_on_spark.runtime.spouts.messages import Settle
from storm_on_spark.runtime.tracking.runs import Runs

SECRET = b"s" * 32


class Ends(NamedTuple):
    """The sockets below two lines."""

    driver: socket.socket
    host: socket.socket


@contextlib.contextmanager
def pair(callers_secret: bytes = SECRET) -> Iterator[tuple[Any, Any, Ends]]:
    """Yields (driver's line, host's line, their sockets); a side that failed is its error."""
    ours, theirs = socket.socketpair()
    ends: dict[str, Any] = {}

    def answer() -> None:
        try:
            ends["driver"] = answer_host(ours, SECRET)
        except (OSError, EOFError) as error:
            ends["driver"] = error
            ours.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        ends["host"] = call_driver(theirs, callers_secret)
    except (OSError, EOFError) as error:
        ends["host"] = error
        theirs.shutdown(socket.SHUT_RDWR)
    thread.join()
    try:
        yield ends["driver"], ends["host"], Ends(ours, theirs)
    finally:
        ours.close()
        theirs.close()


@given(st.lists(st.binary(max_size=300), max_size=5), st.lists(st.binary(max_size=300), max_size=5))
def test_both_sides_get_what_the_other_has_sent(down: list[bytes], up: list[bytes]) -> None:
    with pair() as (driver, host, _):
        for data in down:
            driver.send_bytes(data)
        for data in up:
            host.send_bytes(data)
        assert [host.recv_bytes() for _ in down] == down
        assert [driver.recv_bytes() for _ in up] == up


def test_who_does_not_know_the_secret_is_refused_by_both() -> None:
    with pair(callers_secret=b"t" * 32) as (driver, host, _):
        assert isinstance(driver, (LineError, EOFError))
        assert isinstance(host, LineError)


@given(st.binary(min_size=1, max_size=40), st.integers(0), st.integers(0, 7))
def test_a_message_with_one_bit_changed_is_refused(data: bytes, place: int, bit: int) -> None:
    with pair() as (driver, host, raw):
        sent = _as_sent(host, data, raw.driver)
        at = 4 + place % (len(sent) - 4)  # not its length
        sent[at] ^= 1 << bit
        raw.host.sendall(sent)
        with pytest.raises(LineError, match="a message was changed on its way"):
            driver.recv_bytes()


def test_a_message_that_comes_again_or_goes_to_the_other_side_is_refused() -> None:
    with pair() as (driver, host, raw):
        sent = _as_sent(host, b"once", raw.driver)
        raw.host.sendall(sent)
        assert driver.recv_bytes() == b"once"
        raw.host.sendall(sent)
        with pytest.raises(LineError):
            driver.recv_bytes()
    with pair() as (driver, host, raw):
        raw.host.sendall(_as_sent(driver, b"reflected", raw.host))
        with pytest.raises(LineError):
            driver.recv_bytes()


def test_a_message_that_is_too_long_is_refused_before_there_is_memory_for_it() -> None:
    with pair() as (driver, _, raw):
        raw.host.sendall(b"\xff" * 36)
        with pytest.raises(LineError, match="has 4294967295 bytes; allowed are 1000"):
            driver.recv_bytes(1000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"number": -1, "attempt": 0, "pid": 1, "machine": "", "previous": ""}',
        b'{"number": 1.5, "attempt": 0, "pid": 1, "machine": "", "previous": ""}',
        b'{"number": 1, "attempt": 0, "pid": 1, "machine": "%s", "previous": ""}' % (b"x" * 400),
        b'{"number": 1, "attempt": 0, "pid": 1, "machine": null, "previous": ""}',
        b'{"number": 1, "attempt": 0, "pid": 1, "machine": "", "previous": "", "more": 1}',
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(LineError):
        Hello.parse(data)


def test_a_hello_is_what_it_was() -> None:
    hello = Hello(3, 17, 4711, "a.example", "killed by SIGKILL")
    assert Hello.parse(hello.to_bytes()) == hello


class Ears:
    """A listener, and the callers that it has let in."""

    def __init__(self) -> None:
        self.came: list[tuple[Line, Hello]] = []
        self.listener = LineListener(
            listen_at("127.0.0.1"), SECRET, lambda line, hello: self.came.append((line, hello))
        )

    def call(self, secret: bytes | None = None) -> Line:
        connection = socket.create_connection(("127.0.0.1", self.listener.port), 10)
        try:
            return call_driver(connection, self.listener.secret if secret is None else secret)
        except BaseException:
            connection.close()
            raise


@pytest.fixture
def ears() -> Iterator[Ears]:
    ears = Ears()
    try:
        yield ears
    finally:
        ears.listener.close()
        for line, _ in ears.came:
            line.close()


def test_a_host_comes_through(ears: Ears) -> None:
    line = ears.call()
    line.send_bytes(Hello(0, 1, 2, "here", "").to_bytes())
    eventually(lambda: ears.came)
    ears.came[0][0].send_bytes(b"welcome")
    assert line.recv_bytes() == b"welcome"
    line.close()
    assert ears.came[0][1].machine == "here"


def test_a_stranger_does_not(ears: Ears) -> None:
    with pytest.raises((LineError, EOFError)):
        ears.call(b"guess")
    line = ears.call()
    line.send_bytes(b"who am I?")
    with pytest.raises((EOFError, ConnectionError)):
        line.recv_bytes()
    line.close()
    assert not ears.came


def test_silent_connections_keep_nobody_out(ears: Ears) -> None:
    silent = [socket.create_connection(("127.0.0.1", ears.listener.port)) for _ in range(200)]
    try:
        line = ears.call()
        line.send_bytes(Hello(0, 1, 2, "here", "").to_bytes())
        eventually(lambda: ears.came)
        line.close()
    finally:
        for connection in silent:
            connection.close()


def _as_sent(line: Line, data: bytes, end: socket.socket) -> bytearray:
    """Returns the bytes with which a line sends `data` to the `end` of its connection, and takes them from there."""
    before = line.bytes_sent
    line.send_bytes(data)
    return bytearray(end.recv(line.bytes_sent - before, socket.MSG_WAITALL))


@given(st.sets(st.integers(1, 1 << 40)), st.data())
def test_outcomes_are_the_same_on_the_other_side_and_short_where_all_is_in_order(roots: set[int], data: Any) -> None:
    codes = data.draw(st.lists(st.integers(0, 2), min_size=len(roots), max_size=len(roots)))
    settle = Settle(3, 7, Runs.of(np.array(sorted(roots), np.uint64), np.array(codes, np.uint8)))
    there = pickle.loads(pickle.dumps(settle, 5))
    assert (there.task, there.batch) == (3, 7)
    assert there.ended.roots().tolist() == sorted(roots)
    assert there.ended.each_code().tolist() == codes
    many = Settle(3, 7, Runs.of(np.arange(1, 100_001, dtype=np.uint64), np.zeros(100_000, np.uint8)))
    assert len(pickle.dumps(many, 5)) < 200
