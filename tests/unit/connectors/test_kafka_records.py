"""Records of Kafka as a translator gets them: key and value are deserialized when they are looked at."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from storm_on_spark.connectors.kafka import KafkaRecord, as_text


def refuse(data: bytes) -> str:
    raise ValueError(f"nobody asked for {data!r}")


def test_nothing_is_deserialized_that_nobody_looks_at() -> None:
    record = KafkaRecord.read(("lines", 0, 7), (b"\x80", refuse), (b"storm", as_text), 5, [("h", None)])
    assert (record.topic, record.offset, record.value, record.headers) == ("lines", 7, "storm", (("h", None),))
    with pytest.raises(ValueError, match="nobody asked for"):
        _ = record.key


def test_a_record_is_the_same_however_it_was_made() -> None:
    calls = []

    def once(data: bytes) -> str:
        calls.append(data)
        return data.decode()

    read = KafkaRecord.read(("lines", 0, 7), (None, refuse), (b"storm", once), 5, ())
    made = KafkaRecord("lines", 0, 7, None, "storm", 5)
    assert read == made
    assert hash(read) == hash(made)
    assert repr(read) == repr(made)
    assert pickle.loads(pickle.dumps(read)) == made
    assert dataclasses.replace(read, value="spark").value == "spark"
    assert calls == [b"storm"]
    with pytest.raises(AttributeError, match="has no 'missing'"):
        _ = read.missing


def test_what_is_no_text_stays_bytes() -> None:
    assert (as_text(b"storm"), as_text(b"\xff\xfe")) == ("storm", b"\xff\xfe")
