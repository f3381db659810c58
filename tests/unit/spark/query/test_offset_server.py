"""The ear for the streaming source: lines of JSON over a Unix socket."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.spark.query.reading.offset_server import OffsetServer


@contextmanager
def serving(poll: Callable[[Offset], Offset]) -> Iterator[tuple[OffsetServer, list[Failure]]]:
    failures: list[Failure] = []
    server = OffsetServer(poll, failures.append)
    try:
        yield server, failures
    finally:
        server.close()


@contextmanager
def asking(server: OffsetServer) -> Iterator[Callable[[Offset], bytes]]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server.path)
        connection.settimeout(20)
        with connection.makefile("rwb") as line:

            def ask(start: Offset) -> bytes:
                line.write(json.dumps(start.to_json()).encode() + b"\n")
                line.flush()
                return line.readline()

            yield ask


def later(start: Offset) -> Offset:
    return Offset(start.logs, start.clock + 1, start.carried)


def test_every_line_is_answered_with_an_offset() -> None:
    with serving(later) as (server, failures), asking(server) as ask, asking(server) as other:
        for clock in range(3):
            assert Offset.from_json(json.loads(ask(Offset({3: 7}, clock)))) == Offset({3: 7}, clock + 1)
        assert Offset.from_json(json.loads(other(Offset()))).clock == 1
        folder = Path(server.path).parent
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert failures == []
    assert not folder.exists()


def test_what_keeps_a_batch_from_being_planned_ends_the_topology(caplog: pytest.LogCaptureFixture) -> None:
    def broken(start: Offset) -> Any:
        raise CheckpointError("part of it is missing")

    with serving(broken) as (server, failures), asking(server) as ask:
        assert ask(Offset()) == b""
    (failure,) = failures
    assert failure.message == "the next micro-batch can't be planned: CheckpointError: part of it is missing"
    assert "in broken" in failure.trace


def test_a_question_that_a_disk_does_not_let_answer_is_logged_and_may_be_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    full = [OSError(28, "No space left on device")]

    def poll(start: Offset) -> Offset:
        if full:
            raise full.pop()
        return later(start)

    with serving(poll) as (server, failures):
        with asking(server) as ask:
            assert ask(Offset()) == b""
        with asking(server) as ask:
            assert Offset.from_json(json.loads(ask(Offset()))).clock == 1
    [record] = caplog.records
    assert "No space left on device" in str(record.exc_info)
    assert failures == []
