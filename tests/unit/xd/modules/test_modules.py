"""Each module by itself, with the test kit; and the options of all."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.runtime.processes.diagnostics.prints import TIMED
from storm_on_spark.testing import SpoutTester, make_tuple, run_bolt
from storm_on_spark.xd.admin.checks import check_stream
from storm_on_spark.xd.dsl import DslError
from storm_on_spark.xd.modules import MODULES, ModuleType, OptionError, find_module
from storm_on_spark.xd.modules.declaration import Option
from storm_on_spark.xd.modules.local_registry import LocalRegistry

FIELDS = ["payload", "headers"]


def through(type: ModuleType, name: str, payloads: list[Any], **options: str) -> list[Any]:  # noqa: A002
    bolt: Any = find_module(type, name).make(options, "s")
    done = run_bolt(bolt, [make_tuple([payload, {"h": 1}], FIELDS) for payload in payloads])
    return [payload for payload, _ in done.values()]


def test_time_emits_at_once_and_after_each_delay() -> None:
    source: Any = find_module("source", "time").make({"fixedDelay": "5", "format": "yyyy"}, "s")
    now = [1_000_000_000.0]
    source.now = lambda: now[0]
    tester = SpoutTester(source)
    assert [emission.values for emission in tester.next_tuple(calls=3)] == [("2001", {})]
    now[0] += 5
    assert len(tester.next_tuple(calls=3)) == 1
    now[0] -= 3600
    assert len(tester.next_tuple(calls=3)) == 1, "a clock that was set back stops nothing"


def test_rate_makes_up_for_a_pause_but_not_for_a_long_one() -> None:
    source: Any = find_module("source", "rate").make({"messagesPerSecond": "8"}, "s")
    now = [1_000_000_000.0]
    source.now = lambda: now[0]
    tester = SpoutTester(source)
    emitted = []
    for pause in (0, 0.125, 0.5, 0.0625, 0.0625, 3600):
        now[0] += pause
        emitted.append(len(tester.next_tuple(calls=100)))
    assert emitted == [1, 1, 4, 0, 1, 9], "after an hour, those of a second"


def test_a_source_ends_and_repeats_what_fails() -> None:
    source: Any = find_module("source", "rate").make({"messagesPerSecond": "1000", "maxMessages": "2"}, "s")
    now = iter(range(100))
    source.now = lambda: next(now)
    tester = SpoutTester(source)
    assert [emission.values[0] for emission in tester.next_tuple(calls=5)] == ["0", "1"]
    assert source.exhausted()
    tester.ack(2)
    tester.fail(1)
    assert [emission.values[0] for emission in tester.next_tuple(calls=5)] == ["0"]


def test_trigger_emits_its_payload() -> None:
    source: Any = find_module("source", "trigger").make({"payload": "a b", "maxMessages": "1"}, "s")
    assert [emission.values[0] for emission in SpoutTester(source).next_tuple(calls=2)] == ["a b"]


def test_processors() -> None:
    assert through("processor", "filter", ["a", "bb"], expression="payload.length() == 2") == ["bb"]
    assert through("processor", "transform", ["a"], expression="payload + headers.h") == ["a1"]
    assert through("processor", "splitter", ["a b", ""], expression="payload.split(' ')") == ["a", "b", ""]
    assert through("processor", "splitter", [7]) == [7]
    assert through("processor", "json-to-tuple", ['{"a": [1]}']) == [{"a": [1]}]


def test_aggregator_makes_lists_of_what_belongs_together() -> None:
    made = through(
        "processor", "aggregator", ["a1", "b1", "a2", "a3"], count="2", correlation="payload.substring(0, 1)"
    )
    assert made == [["a1", "a2"]]


def test_file_reads_every_file_once_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"three\n")
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\n\n")
    (tmp_path / "a.log").write_bytes(b"no\n")
    source: Any = find_module("source", "file").make({"dir": str(tmp_path), "pattern": "*.txt", "once": "true"}, "s")
    tester: Any = SpoutTester(source)
    emitted = tester.next_tuple()
    tester.restart()
    emitted += tester.next_tuple(calls=10)
    assert [emission.values[0] for emission in emitted] == ["one", "two", "", "three"]
    assert emitted[-1].values[1] == {"file_name": "b.txt"}
    assert tester.spout.exhausted()
    tester.fail(2)
    assert not tester.spout.exhausted()
    assert tester.next_tuple(calls=3) == [], "it comes again after a second"
    tester.spout.now = lambda: time.time() + 1
    assert [emission.values[0] for emission in tester.next_tuple(calls=3)] == ["two"]


def test_file_waits_for_new_files(tmp_path: Path) -> None:
    source: Any = find_module("source", "file").make({"dir": str(tmp_path / "later")}, "s")
    now = [0.0]
    source.now = lambda: now[0]
    tester = SpoutTester(source)
    assert tester.next_tuple(calls=2) == []
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a").write_text("one")
    assert tester.next_tuple(calls=2) == []
    now[0] += 5
    assert [emission.values[0] for emission in tester.next_tuple(calls=3)] == ["one"]
    assert not source.exhausted()


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\n", "not UTF-8"), (b"a" * 1_000_001, "at most 1000000 bytes")]
)
def test_file_refuses_what_is_no_line_of_text(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(content)
    source: Any = find_module("source", "file").make({"dir": str(tmp_path)}, "s")
    with pytest.raises(ValueError, match=message):
        SpoutTester(source).next_tuple()


@pytest.mark.parametrize("payload", ["[1]", "{", "[" * 100_000, 7, None])
def test_what_is_no_json_object(payload: Any) -> None:
    with pytest.raises(ValueError, match="json-to-tuple expects a JSON object, got"):
        through("processor", "json-to-tuple", [payload])


LOG_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def test_log_writes_one_line_per_message_with_its_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert through("sink", "log", ["a\nb", True], level="WARN") == []
    lines = capsys.readouterr().err.splitlines()
    assert [LOG_TIME.sub("", line) for line in lines] == ["WARN sink.s - a\\nb", "WARN sink.s - true"]
    assert all(LOG_TIME.match(line) for line in lines)
    # Where every line gets it anyway, it stands there once.
    monkeypatch.setenv(TIMED, "1")
    assert through("sink", "log", ["c"]) == []
    assert capsys.readouterr().err == "INFO sink.s - c\n"


def test_null_drops() -> None:
    assert through("sink", "null", ["a"]) == []


@pytest.mark.parametrize("module", MODULES.values(), ids=lambda module: f"{module.type}:{module.name}")
def test_every_module_works_with_its_defaults(module: Any, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("def process(payload, headers): ...")
    values = {"url": "http://127.0.0.1:1/", "location": str(tmp_path / "s.py"), "appJar": "app.py"}
    needed = {option.name: values.get(option.name, "any") for option in module.options if option.default is None}
    if module.name == "jdbc":
        needed["database"] = "any"
    assert (module.values if module.type == "job" else module.make)(needed, "s") is not None
    assert module.help.endswith(".")
    assert all(option.help.endswith(".") for option in module.options)


@pytest.mark.parametrize(
    ("module", "given", "message"),
    [
        (("source", "time"), {"fixedDelay": "0"}, "Expected a number of at least 0.001, got '0'"),
        (("source", "time"), {"fixedDelay": "1e3"}, "Expected a number"),
        (("source", "time"), {"fixedDelay": "9999999999"}, "Expected at most 2147483647"),
        (("source", "time"), {"maxMessages": "0"}, "Expected -1 for no end, or at least 1"),
        (("source", "time"), {"maxMessages": "1.5"}, "Expected an integer of at least -1, got '1.5'"),
        (("source", "time"), {"format": "QQ"}, "Expected one of yyyy, .* got 'QQ'"),
        (("source", "time"), {"format": "'a"}, "Expected a closing '"),
        (("source", "time"), {"format": "y" * 300}, "at most 200 characters"),
        (("sink", "log"), {"level": "loud"}, "Expected one of FATAL, .* got 'loud'"),
        (("source", "file"), {"dir": ""}, "Expected the path of a folder, got ''"),
        (("source", "file"), {"pattern": "../*", "dir": "d"}, "Expected a pattern of names"),
        (("sink", "file"), {"format": "xml", "dir": "d"}, "Expected one of json, csv, got 'xml'"),
        (("sink", "file"), {}, "Expected --dir, which file needs"),
        (("sink", "null"), {"x": "1"}, "Expected one of no options, got --x"),
        (("processor", "filter"), {"expression": "1 +"}, "Expected a value, got the end"),
    ],
)
def test_options_that_are_refused(module: tuple[str, str], given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        MODULES[module].make(given, "s")
    assert caught.value.option == next(iter(given), "dir")


@pytest.mark.parametrize(
    ("module", "given", "texts"),
    [
        (("sink", "kafka"), {"brokerList": "a:1"}, {"brokers": "a:1", "topic": "s", "key": "null"}),
        (("source", "kafka"), {"groupId": "g"}, {"brokers": "127.0.0.1:9092", "topic": "s", "group": "g"}),
        (("source", "http"), {"maxContentLength": "5"}, {"maxBytes": "5"}),
        (("processor", "http-client"), {"url": "http://a", "httpMethod": "GET"}, {"method": "GET"}),
        (("sink", "jdbc"), {"database": "a.db", "tableName": "t"}, {"table": "t"}),
        (("sink", "aggregate-counter"), {"incrementExpression": "2"}, {"increment": "2"}),
    ],
)
def test_options_have_the_names_of_spring_xd_too(
    module: tuple[Any, str], given: dict[str, str], texts: dict[str, str]
) -> None:
    found = find_module(*module)
    assert found.texts(given, "s").items() >= texts.items()
    found.make(given, "s")


def test_an_option_is_given_by_one_name() -> None:
    with pytest.raises(OptionError, match="--brokers and --brokerList, which are the same"):
        find_module("sink", "kafka").make({"brokers": "a:1", "brokerList": "a:1"}, "s")
    with pytest.raises(DslError, match=r"\(pos 27\): bootstrap servers are host:port"):
        check_stream("s", "time | kafka --brokerList='x y' --topic=a", LocalRegistry(), dict)


def test_typed_options() -> None:
    assert Option("aB", "boolean", "true", "Help.").value("false") is False
    assert Option("fixedDelay", "text", None, "Help.").argument == "fixed_delay"
    with pytest.raises(OptionError, match="Expected true or false, got 'no'"):
        Option("a", "boolean", "true", "Help.").value("no")
