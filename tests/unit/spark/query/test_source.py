"""The two readers of the streaming source, as the process in which Spark plans calls them."""

from __future__ import annotations

import pickle

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.spark.query.reading.offset_server import OffsetServer
from storm_on_spark.spark.query.reading.positions import SourceSettings, offsets_of
from storm_on_spark.spark.query.reading.source import OffsetsReader, TopologyReader, source_class


def settings(path: str = "/nowhere") -> SourceSettings:
    return SourceSettings("start", b"", path, 3)


def test_both_ask_the_coordinator_also_after_they_were_pickled() -> None:
    start, end = Offset({3: 7}, 5), Offset({3: 9}, 6)
    asked: list[Offset] = []

    def poll(offset: Offset) -> Offset:
        asked.append(offset)
        return end

    server = OffsetServer(poll, lambda *failure: pytest.fail(str(failure)))
    try:
        reader = TopologyReader(settings(server.path))
        for each in (reader, pickle.loads(pickle.dumps(reader))):
            assert each.latestOffset(start.to_json(), None) == end.to_json()
            assert [partition.index for partition in each.partitions(start.to_json(), end.to_json())] == [0, 1, 2]
            each.stop()
        simple = OffsetsReader(settings(server.path))
        both = (simple, pickle.loads(pickle.dumps(simple)))
        for each in both:
            rows, found = each.read(start.to_json())
            assert found == end.to_json()
            ((key, body),) = rows
            assert (key, offsets_of(body)) == (0, (start, end))
    finally:
        server.close()
    assert asked == [start] * 4
    for each in both:
        rows, found = each.read(end.to_json())
        assert (list(rows), found) == ([], end.to_json()), "a topology that is stopping has nothing more to do"


def test_a_micro_batch_that_was_planned_before_a_restart_has_the_same_row() -> None:
    reader = OffsetsReader(settings())
    start, end = Offset({3: 7}, 5).to_json(), Offset({3: 7}, 6).to_json()
    assert [offsets_of(body) for _, body in reader.readBetweenOffsets(start, end)] == [
        (Offset({3: 7}, 5), Offset({3: 7}, 6))
    ]
    # Spark takes a row without an advance for an error.
    assert list(reader.readBetweenOffsets(start, start)) == []


def test_offsets_of_another_version_are_refused() -> None:
    (_, body), *_ = OffsetsReader(settings()).readBetweenOffsets({"version": 9}, Offset().to_json())
    with pytest.raises(CheckpointError, match="format version 9; this release reads 2"):
        offsets_of(body)


def test_spark_is_told_of_one_kind_of_reader() -> None:
    later, now = (source_class("storm-x", settings(), read_later)(options={}) for read_later in (True, False))
    assert isinstance(later.simpleStreamReader(None), OffsetsReader)
    assert isinstance(now.streamReader(None), TopologyReader)
    assert "streamReader" not in vars(type(later))
    assert "simpleStreamReader" not in vars(type(now))
