"""What a live process and the executors of spouts wait with, and how messages go between them."""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lengths import PATIENCE_SECS

from storm_on_spark.runtime.processes.frames import Frames, framed
from storm_on_spark.runtime.processes.wake import Wake

SECS = PATIENCE_SECS


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


@given(messages=st.lists(st.binary(max_size=300)), sizes=st.lists(st.integers(1, 50), min_size=1))
def test_messages_come_whole_however_the_bytes_come(messages: list[bytes], sizes: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames, found = Frames(ours), []
        stream, number = b"".join(map(framed, messages)), 0
        while stream:
            size = sizes[number % len(sizes)]
            theirs.sendall(stream[:size])
            stream, number = stream[size:], number + 1
            found += frames.received()
        assert found == messages
        assert not frames.over


def test_what_a_reader_does_not_take_waits_and_the_sender_does_not(ends: tuple[socket.socket, socket.socket]) -> None:
    frames, theirs = Frames(ends[0]), ends[1]
    messages = [bytes([number]) * 100_000 for number in range(20)]
    sent = [frames.send(message) for message in messages]
    assert sent[0], "the first one fits"
    assert not sent[-1], "nobody has read"
    reader, found = Frames(theirs), []
    deadline = time.monotonic() + SECS
    while len(found) < len(messages):
        assert time.monotonic() < deadline
        frames.flush()
        found += reader.received()
    assert found == messages
    assert frames.flush()


def test_a_connection_of_multiprocessing_understands_it(ends: tuple[socket.socket, socket.socket]) -> None:
    frames = Frames(ends[0])
    with Connection(ends[1].detach()) as other:
        other.send_bytes(b"question")
        assert frames.received() == [b"question"]
        frames.send(pickle.dumps("answer"))
        assert pickle.loads(other.recv_bytes()) == "answer"


def test_the_end_is_noticed_behind_the_last_message(ends: tuple[socket.socket, socket.socket]) -> None:
    frames, theirs = Frames(ends[0]), ends[1]
    theirs.sendall(framed(b"last") + framed(b"torn")[:5])
    theirs.close()
    assert frames.received() == [b"last"]
    assert frames.received() == []
    assert frames.over


def test_no_wake_is_lost_between_threads() -> None:
    wake, done, count = Wake(), [], 2000

    def work(number: int) -> None:
        for step in range(count):
            done.append((number, step))
            wake.set()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen, slept = 0, 0.0
    while seen < 4 * count:
        wake.clear()
        seen = len(done)
        if seen < 4 * count:
            began = time.monotonic()
            wake.wait(SECS)
            slept = max(slept, time.monotonic() - began)
    for thread in threads:
        thread.join(SECS)
    wake.close()
    assert slept < SECS, "a wake was lost, and the wait ended by itself"


def test_a_wait_ends_when_a_descriptor_is_ready(ends: tuple[socket.socket, socket.socket]) -> None:
    wake = Wake()
    wake.watch(ends[0].fileno())
    ends[1].sendall(b"news")
    began = time.monotonic()
    wake.wait(SECS)
    assert time.monotonic() - began < SECS
    wake.watch(None)
    began = time.monotonic()
    wake.wait(0.05)
    assert time.monotonic() - began >= 0.05
    wake.close()
    wake.set()


def test_what_is_closed_is_not_written_to_by_a_thread_that_was_about_to(monkeypatch: pytest.MonkeyPatch) -> None:
    wake = Wake()
    closer = threading.Thread(target=wake.close)
    write = os.write

    def slow(descriptor: int, data: bytes) -> int:
        closer.start()
        closer.join(0.2)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", slow)
    wake.set()
    closer.join(60)
    wake.set()


def test_descriptors_of_others_end_a_wait_only_where_they_are_asked_for(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    wake, number = Wake(), ends[0].fileno()
    wake.watch_others(number)
    ends[1].sendall(b"news")
    began = time.monotonic()
    wake.wait(SECS)
    assert time.monotonic() - began < SECS
    began = time.monotonic()
    wake.wait(0.05, others=False)
    assert time.monotonic() - began >= 0.05
    for _ in range(2):  # one that is not known is forgotten, too
        wake.unwatch_others(number)
    began = time.monotonic()
    wake.wait(0.05)
    assert time.monotonic() - began >= 0.05
    wake.close()
