"""Instances of modules between two places of the bus: what is emitted, and what is left after one dies."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from storm_on_spark import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Fields
from storm_on_spark.api.errors import FailedException
from storm_on_spark.xd.bus.inputs import Inputs, beginning, numbered
from storm_on_spark.xd.bus.journal import Journal, Message, Record
from storm_on_spark.xd.bus.local import LocalBus
from storm_on_spark.xd.bus.port import ModuleFeed, Place
from storm_on_spark.xd.container import instance as instances
from storm_on_spark.xd.container.chain import Chain
from storm_on_spark.xd.container.instance import Instance
from storm_on_spark.xd.modules import find_module


class _Running(BaseBasicBolt):
    """Emits running sums, and raises at what is no number after it has taken it in."""

    stateless = False

    def __init__(self) -> None:
        self._sum = 0

    def execute(self, tup: Any, collector: Any) -> None:
        self._sum += 1
        self._sum += int(tup["payload"]) - 1
        collector.emit([self._sum, tup["headers"]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("payload", "headers"))


class _Moody(BaseBasicBolt):
    """Counts before it raises, so that a retry would count twice if nothing was set back."""

    stateless = False

    def __init__(self) -> None:
        self._seen: list[str] = []

    def execute(self, tup: Any, collector: Any) -> None:
        self._seen.append(tup["payload"])
        if tup["payload"] == "bad":
            raise FailedException("it is bad")
        collector.emit([list(self._seen), tup["headers"]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("payload", "headers"))


class _Holding(BaseRichBolt):
    """Acks inputs in pairs."""

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self._collector = collector
        self._waiting: list[Any] = []

    def execute(self, tup: Any) -> None:
        self._waiting.append(tup)
        if len(self._waiting) == 2:
            for each in self._waiting:
                self._collector.ack(each)
            self._waiting = []


def _source(folder: Path, **options: str) -> Instance:
    declaration = find_module("source", "rate")
    given = {"messagesPerSecond": "1000", **options}
    place = Place("s", "rate", readers=("s.sum.1",))
    return Instance("rate.1", lambda: Chain([("rate", declaration.make(given, "s"))], "s.rate.1"), _bus(folder), place)


def _bolt(folder: Path, make: Callable[[], Any], **more: Any) -> Instance:
    place = Place("s", "sum", input=ModuleFeed("s", "rate"), **more)
    return Instance("sum.1", lambda: Chain([("sum", make())], "s.sum.1"), _bus(folder), place)


def _bus(folder: Path) -> LocalBus:
    return LocalBus(folder, most_bytes=1 << 30)


def _written(folder: Path, module: str) -> list[Any]:
    journal = Journal(folder / "s" / module / "1")
    records = (journal.read(number) for number in range(1, journal.last() + 1))
    return [message.payload for record in records if record is not None for message in record.messages]


def _emit(folder: Path, *payloads: object) -> None:
    journal = Journal(folder / "s" / "rate" / "1")
    journal.append(journal.last() + 1, Record(tuple(Message(payload, {}) for payload in payloads)))


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is removed from the journals, so that all can be compared, and retries come soon."""
    monkeypatch.setattr(Journal, "remove", lambda self, *numbers: [])
    monkeypatch.setattr(instances, "_FIRST_RETRY_SECS", 0.02)


def test_a_stream_goes_on_in_other_instances_with_nothing_lost_and_nothing_twice(tmp_path: Path) -> None:
    expected = [number * (number + 1) // 2 for number in range(300)]
    for _ in range(3):
        pair = _source(tmp_path, maxMessages="300"), _bolt(tmp_path, _Running)
        before = len(_written(tmp_path, "sum"))
        for each in pair:
            each.start()
        eventually(lambda: len(_written(tmp_path, "sum")) >= min(300, before + 90))  # noqa: B023 # called at once
        for each in pair:
            each.stop()
    last = _source(tmp_path, maxMessages="300"), _bolt(tmp_path, _Running)
    for each in last:
        each.start()
    eventually(lambda: len(_written(tmp_path, "sum")) >= 300)
    for each in last:
        each.stop()
    assert _written(tmp_path, "rate") == [str(number) for number in range(300)]
    assert _written(tmp_path, "sum") == expected


def test_two_processes_that_believe_to_be_the_same_instance_write_one_journal(tmp_path: Path) -> None:
    _emit(tmp_path, *range(50))
    twins = [_bolt(tmp_path, _Running) for _ in range(2)]
    for each in twins:
        each.start()
    for _ in range(20):
        _emit(tmp_path, 1, 1)
        time.sleep(0.01)
    eventually(lambda: len(_written(tmp_path, "sum")) >= 90)
    for each in twins:
        each.stop()
    numbers = [*range(50), *[1] * 40]
    assert _written(tmp_path, "sum") == [sum(numbers[: end + 1]) for end in range(90)]


def test_a_message_that_fails_leaves_no_trace_and_becomes_a_dead_letter(tmp_path: Path) -> None:
    _emit(tmp_path, "a", "bad", "b")
    bolt = _bolt(tmp_path, _Moody)
    bolt.start()
    eventually(lambda: len(_written(tmp_path, "sum")) == 2)
    bolt.stop()
    assert _written(tmp_path, "sum") == [["a"], ["a", "b"]]
    letters = list((tmp_path / "s" / "sum" / "1" / "dead-letters").iterdir())
    assert [json.loads(letter.read_text())["payload"] for letter in letters] == ["bad"]


class _Strict(BaseBasicBolt):
    """Takes numbers, and reports those that are negative."""

    def execute(self, tup: Any, collector: Any) -> None:
        if int(tup["payload"]) < 0:
            collector.report_error(ValueError("negative"))
        collector.emit([tup["payload"], tup["headers"]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("payload", "headers"))


def test_equal_errors_are_logged_with_their_number_and_the_input(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path / "s" / "rate" / "1")
    headers = {"password": "hush"}
    journal.append(1, Record(tuple(Message(payload, headers) for payload in ["bad", "-1", "bad", "-1", "-1", "2"])))
    bolt = _bolt(tmp_path, _Strict)
    bolt.start()
    eventually(lambda: len(_written(tmp_path, "sum")) == 4)
    bolt.stop()
    logged = [record.getMessage().splitlines() for record in caplog.records if "errors" in record.name]
    failed = "sum.1: sum failed in execute: ValueError: invalid literal for int() with base 10: 'bad'"
    dead = "sum.1: a message is a dead letter now: sum failed in execute: ValueError: invalid"
    negative = "sum.1: sum reports: ValueError: negative"
    bad, low = "input: ('bad', {'password': *****})", "input: ('-1', {'password': *****})"
    assert {lines[1] for lines in logged if lines[0].startswith((failed, dead))} == {bad}
    assert {lines[1] for lines in logged if lines[0].startswith(negative)} == {low}
    # The first is logged at once, with its trace; the others of the interval as one, when the instance ends.
    for start in (failed, dead, negative):
        first, rest = [lines for lines in logged if lines[0].startswith(start)]
        assert re.search(r" \(x \d+ since [0-9:]{8}\)$", rest[0])
        assert not rest[2:]
        assert any("test_container_instance.py" in line for line in first) == (start != dead)
    assert "hush" not in caplog.text
    assert _letters(tmp_path) == ["bad", "bad"], "each is a dead letter once"


@pytest.mark.parametrize("phase", ["ack", "fail"])
def test_an_error_of_a_source_names_the_message(tmp_path: Path, caplog: pytest.LogCaptureFixture, phase: str) -> None:
    class Telling(BaseRichSpout):
        def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
            self._collector = collector

        def next_tuple(self) -> None:
            payload = "1" if phase == "ack" else "bad"
            self._collector.emit([payload, {}], message_id={"token": "hush", "line": "x" * 500})

        def ack(self, message_id: Any) -> None:
            raise OSError("gone")

        fail = ack

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields("payload", "headers"))

    def chain() -> Chain:
        return Chain([("mail", Telling()), ("sum", _Strict())], "s.mail.1")

    source = Instance("mail.1", chain, _bus(tmp_path), Place("s", "mail"))
    source.start()
    eventually(lambda: f"mail failed in {phase}" in caplog.text)
    source.stop()
    logged = [record.getMessage() for record in caplog.records if f"mail failed in {phase}" in record.getMessage()]
    first, given = logged[0].splitlines()[:2]
    assert first == f"mail.1: mail failed in {phase}: OSError: gone"
    assert given.startswith("input: message id {'token': *****, 'line': 'xxx")
    assert len(given) == len("input: ") + 200


def test_an_input_that_a_bolt_holds_is_read_again_after_a_restart(tmp_path: Path) -> None:
    _emit(tmp_path, "a", "b", "c")
    bolt = _bolt(tmp_path, _Holding)
    bolt.start()
    eventually(lambda: Journal(tmp_path / "s" / "sum" / "1").last())
    bolt.stop()
    journal = Journal(tmp_path / "s" / "sum" / "1")
    record = journal.read(journal.last())
    assert record is not None
    assert record.positions == {"1": (1, 2)}


class _Pairs(_Holding):
    """Emits pairs, and raises at what is bad after it has taken it in."""

    def execute(self, tup: Any) -> None:
        self._waiting.append(tup)
        if tup["payload"] == "bad":
            raise ValueError("it is bad")
        if tup["payload"] == "fail":
            for each in self._waiting[:-1]:
                self._collector.fail(each)
            self._collector.ack(self._waiting.pop())
            self._waiting = []
        elif len(self._waiting) == 2:
            self._collector.emit([[each["payload"] for each in self._waiting], {}])
            for each in self._waiting:
                self._collector.ack(each)
            self._waiting = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("payload", "headers"))


def _positions(folder: Path) -> Mapping[str, tuple[int, int]]:
    journal = Journal(folder / "s" / "sum" / "1")
    record = journal.read(journal.last())
    return {} if record is None else record.positions


def _letters(folder: Path) -> list[str]:
    paths = sorted((folder / "s" / "sum" / "1").glob("dead-letters/*.json"))
    return [json.loads(path.read_text())["payload"] for path in paths]


def test_an_input_that_a_bolt_holds_stays_held_when_a_later_one_becomes_a_dead_letter(tmp_path: Path) -> None:
    _emit(tmp_path, "a", "b", "c")
    _emit(tmp_path, "bad")
    bolt = _bolt(tmp_path, _Pairs)
    bolt.start()
    eventually(lambda: _letters(tmp_path))
    eventually(lambda: Journal(tmp_path / "s" / "sum" / "1").last() > 1)
    # After a restart "c" would be read again.
    assert _positions(tmp_path) == {"1": (1, 2)}
    _emit(tmp_path, "d")
    eventually(lambda: len(_written(tmp_path, "sum")) == 2)
    eventually(lambda: _positions(tmp_path) == {"1": (4, 0)})
    bolt.stop()
    assert _written(tmp_path, "sum") == [["a", "b"], ["c", "d"]]
    assert _letters(tmp_path) == ["bad"]


def test_an_input_that_a_bolt_holds_and_then_fails_is_a_dead_letter(tmp_path: Path) -> None:
    _emit(tmp_path, "a", "b", "c", "fail")
    bolt = _bolt(tmp_path, _Pairs)
    bolt.start()
    eventually(lambda: _positions(tmp_path) == {"1": (2, 0)})
    bolt.stop()
    assert (_written(tmp_path, "sum"), _letters(tmp_path)) == ([["a", "b"]], ["c"])


def test_what_a_source_was_not_told_of_before_it_died_it_is_told_of_then(tmp_path: Path) -> None:
    # As if it had died between the record and the ack.
    Journal(tmp_path / "s" / "rate" / "1").append(1, Record((Message("a", {}),), emitted=(7,)))
    told: list[Any] = []

    class Told(BaseRichSpout):
        def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
            pass

        def next_tuple(self) -> None:
            pass

        def ack(self, message_id: Any) -> None:
            told.append(message_id)

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields("payload", "headers"))

    source = Instance("rate.1", lambda: Chain([("rate", Told())], "s.rate.1"), _bus(tmp_path), Place("s", "rate"))
    source.start()
    eventually(lambda: told)
    source.stop()
    assert told == [7]


def test_instances_share_what_is_read(tmp_path: Path) -> None:
    _emit(tmp_path, *range(100))
    found: dict[int, list[Any]] = {}
    for sequence in (1, 2):
        place = Place("s", "sum", sequence, 2, input=ModuleFeed("s", "rate"))
        declaration = find_module("processor", "transform")
        each = Instance("sum", lambda: Chain([("t", declaration.make({}, "s"))], "s.t"), _bus(tmp_path), place)  # noqa: B023

        each.start()
        journal = Journal(tmp_path / "s" / "sum" / str(sequence))
        eventually(journal.last)
        each.stop()
        found[sequence] = [message.payload for message in journal.read(1).messages]  # type: ignore[union-attr]
    assert sorted(found[1] + found[2]) == list(range(100))
    assert len(found[1]) == 50


def test_a_reader_that_comes_later_begins_where_it_is_told(tmp_path: Path) -> None:
    _emit(tmp_path, "before")
    ends = beginning(tmp_path / "s" / "tap", (1, 1), None, lambda: {"1": (2, 0)})
    _emit(tmp_path, "after")
    inputs = Inputs(lambda: numbered(tmp_path / "s" / "rate"), "tap.1", ends)
    assert [each.message.payload for each in inputs.next(9)] == ["after"]


def test_a_sink_takes_back_the_file_of_a_step_that_was_not_committed(tmp_path: Path) -> None:
    def chain() -> Chain:
        return Chain([("file", find_module("sink", "file").make({"dir": str(tmp_path)}, "s"))], "s.file.1")

    first = chain()
    first.open(())
    states = []
    for payload in ("committed", "another reader has it now"):
        first.execute(Message(payload, {}), 1)
        first.finish()
        states.append(first.state())
    chain().open(states[0])
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text()) == {"payload": "committed"}
