"""Event loggers of users: what they get, and what becomes of those that fail."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.metrics import EventInfo, IEventLogger
from storm_on_spark.runtime.samples.book import MOST_KEPT, SampleBook
from storm_on_spark.runtime.samples.events import TupleEvent, encoded
from storm_on_spark.runtime.samples.loggers import EventLoggers, loggers_of
from storm_on_spark.runtime.samples.sampler import MOST_FILES

FILED = "org.apache.storm.metric.FileBasedEventLogger"


class Collecting(IEventLogger):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[EventInfo] = []
        self.prepared: list[Mapping[str, Any]] = []
        self.closed = 0

    def prepare(self, conf: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        self.prepared += [conf, arguments]

    def log(self, event: EventInfo) -> None:
        assert not self.closed
        self.got.append(event)

    def close(self) -> None:
        self.closed += 1


class Raising(Collecting):
    def log(self, event: EventInfo) -> None:
        raise RuntimeError("no")

    def close(self) -> None:
        raise RuntimeError("nor this")


class Hanging(Collecting):
    """Takes no tuple before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()

    def log(self, event: EventInfo) -> None:
        self.begun.set()
        self.may.wait()
        super().log(event)


def emitted(number: int) -> TupleEvent:
    return TupleEvent(float(number), "emit", "split", 3, "words", values=f"n={number}", message_id="m")


def put(folder: Path, name: str, *events: TupleEvent) -> None:
    """Puts samples where a process does."""
    samples = folder / "samples"
    temporary = folder / "a-sample"
    temporary.write_bytes(encoded(events))
    temporary.rename(samples / name)


@pytest.fixture
def book(tmp_path: Path) -> SampleBook:
    book = SampleBook(tmp_path)
    book.set("", 100)
    return book


def test_loggers_get_each_emitted_tuple_once_and_in_order_and_samples_are_kept_all_the_same(
    tmp_path: Path, book: SampleBook
) -> None:
    logger = Collecting()
    running = EventLoggers([logger], book, 0.001)
    running.start()
    put(tmp_path, "p-0", emitted(2), emitted(1), TupleEvent(3.0, "execute", "count", 4))
    eventually(lambda: len(logger.got) == 2, "the first samples")
    assert book.gather()  # as a page does, which takes samples over, too
    put(tmp_path, "p-1", emitted(4), TupleEvent(5.0, "end", "lines", 1))
    running.close()
    assert [event.ts for event in logger.got] == [1.0, 2.0, 4.0]
    assert logger.got[0] == EventInfo(1.0, "split", 3, "m", "n=1", "words")
    assert logger.closed == 1
    assert len(book.gather()) == 5


def test_a_logger_that_raises_is_said_once_and_the_others_get_theirs(
    tmp_path: Path, book: SampleBook, caplog: pytest.LogCaptureFixture
) -> None:
    logger = Collecting()
    running = EventLoggers([Raising(), logger], book, 3600)
    running.start()
    put(tmp_path, "p-0", emitted(1), emitted(2))
    running.close()
    assert [event.ts for event in logger.got] == [1.0, 2.0]
    assert len([record for record in caplog.records if "Raising raised" in record.getMessage()]) == 1


def test_a_logger_that_hangs_holds_up_no_page_and_what_waits_for_it_stays_bounded(
    tmp_path: Path, book: SampleBook
) -> None:
    logger = Hanging()
    running = EventLoggers([logger], book, 0.001)
    running.start()
    put(tmp_path, "p-0", emitted(0))
    assert logger.begun.wait(600)
    for number in range(100):
        put(tmp_path, f"p-{number % MOST_FILES}", *[emitted(number + 1)] * 100)
        assert len(book.gather()) == min(MOST_KEPT, 100 * (number + 1) + 1)
    logger.may.set()
    running.close()
    assert len(logger.got) == 1 + MOST_KEPT
    assert logger.got[-1].ts == 100.0


def test_loggers_are_made_of_what_the_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collections.Logger", Collecting, raising=False)
    entries = [{"class": "collections.Logger", "arguments": {"a": 1}}, {"class": FILED}]
    logger, filed = loggers_of(entries, {"topology.name": "words"})
    assert isinstance(logger, Collecting)
    assert logger.prepared == [{"topology.name": "words"}, {"a": 1}]
    filed.log(EventInfo(0.0, "a", 1, "", ""))  # the driver writes the file


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("a text", "mappings with `class` and `arguments`"),
        ({"class": "org.example.Unknown"}, "can't be used"),
        ({"class": "collections.OrderedDict"}, "not a subclass of IEventLogger"),
        ({"class": FILED, "arguments": "events.log"}, "are a mapping"),
    ],
)
def test_what_is_no_event_logger_is_refused(entry: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        loggers_of([entry], {})
