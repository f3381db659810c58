"""The line between Spark's process for the source and the coordinator, when the second ends."""

from __future__ import annotations

import pytest

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.spark.query.reading.offset_server import OffsetServer
from storm_on_spark.spark.query.reading.source import _Line


def test_questions_after_the_coordinator_has_hung_up_find_nothing_new() -> None:
    server = OffsetServer(lambda start: Offset(clock=7), pytest.fail)
    start = Offset().to_json()
    line = _Line(server.path)
    try:
        assert line.end_after(start)["clock"] == 7
    finally:
        server.close()
    # Spark may ask several times before it has ended the query.
    assert [line.end_after(start) for _ in range(3)] == [start] * 3


def test_a_socket_that_was_never_there_is_an_error() -> None:
    server = OffsetServer(lambda start: start, pytest.fail)
    server.close()
    with pytest.raises(FileNotFoundError):
        _Line(server.path).end_after(Offset().to_json())
