"""A stream as a topology, and the commands on streams and modules."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.code.packing.collect import collect
from storm_on_spark.connectors.kafka import DEAD_LETTER_FIELDS
from storm_on_spark.launch.loader import LoadError, load
from storm_on_spark.testing import make_tuple, run_bolt
from storm_on_spark.xd.dsl import Code, DslError, parse_stream
from storm_on_spark.xd.fused import build, load_stream
from storm_on_spark.xd.modules.messages.dead_letters import DeadLetters, Letter
from storm_on_spark.xd.modules.messages.history import HISTORY, tracked

WORDS = "words = trigger --payload='to be or not' --maxMessages=1 | splitter --expression=\"payload.split(' ')\""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_modules_become_components() -> None:
    target = load_stream("ticktock = time | a:filter | b:filter | log")
    topology = target.topology({})
    assert (target.name, list(topology.spouts), sorted(topology.bolts)) == ("ticktock", ["time"], ["a", "b", "log"])


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("tyme | log", Code.UNKNOWN_MODULE, 0),
        ("log | time", Code.UNKNOWN_MODULE, 0),
        ("time | x:time | log", Code.UNKNOWN_MODULE, 7),
        ("time | log --nme=x", Code.UNKNOWN_OPTION, 11),
        ("time --fixedDelay=x | log", Code.BAD_VALUE, 18),
        ("time | filter --expression='payload ++ 1' | log", Code.BAD_VALUE, 37),
        ("time | filter --expression='''a'' ++ 1' | log", Code.BAD_VALUE, 28),
        ("time | file", Code.MISSING_OPTION, 7),
        ("time", Code.INCOMPLETE, 0),
        ("a = time", Code.INCOMPLETE, 4),
        ("time > queue:x", Code.NOT_FUSED, 5),
        ("tap:stream:x > log", Code.NOT_FUSED, 0),
        ("time | __a:log", Code.NAME, 7),
    ],
)
def test_what_makes_no_topology(text: str, code: Code, position: int) -> None:
    with pytest.raises(DslError) as caught:
        build(parse_stream(text), text)
    assert (caught.value.code, caught.value.position) == (code, position)


def test_a_stream_runs_in_process() -> None:
    done = invoke("stream", "run", "--in-process", "--quiet", f"{WORDS} | filter --expression=payload!='or' | log")
    assert (done.exit_code, [line[len("2026-11-27 13:56:10,123 ") :] for line in done.output.splitlines()]) == (
        0,
        ["INFO sink.words - to", "INFO sink.words - be", "INFO sink.words - not"],
    )


def test_a_stream_goes_from_file_to_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo\nthree\n")
    source, sink = f"file --dir='{tmp_path / 'in'}' --once=true", f"file --dir='{tmp_path / 'out'}'"
    done = invoke("stream", "run", "--in-process", "--quiet", f"from:{source} | to:{sink}")
    assert (done.exit_code, done.output) == (0, "")
    lines = "".join(path.read_text() for path in sorted((tmp_path / "out").iterdir())).splitlines()
    assert [json.loads(line)["payload"] for line in lines] == ["one", "two", "three"]


@pytest.mark.parametrize("letters", [True, False])
def test_a_stream_writes_to_a_database_and_what_that_refuses_is_a_dead_letter(tmp_path: Path, letters: bool) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "d")) as database:
        database.execute("CREATE TABLE words (payload CHECK (payload <> 'or'))")
        definition = f"{WORDS} | jdbc --database={tmp_path / 'd'} --table=words"
        more = ["--dead-letters", str(tmp_path / "letters")] if letters else []
        done = invoke("stream", "run", "--in-process", "--quiet", *more, definition)
        rows = [row for (row,) in database.execute("SELECT payload FROM words")]
    if letters:
        assert (done.exit_code, rows) == (0, ["to", "be", "not"])
        [file] = (tmp_path / "letters" / "refused-rows").iterdir()
        assert json.loads(file.read_text())["row"] == {"payload": "or"}
    else:
        assert (done.exit_code, rows) == (1, [])
        assert "words refuses a row: IntegrityError: CHECK constraint failed" in done.stderr
        assert "--dead-letters FOLDER" in done.stderr


def test_a_message_without_a_value_ends_the_run() -> None:
    done = invoke("stream", "run", "--in-process", "--quiet", f"{WORDS} | transform --expression=payload.a | log")
    assert done.exit_code == 1
    assert "Expected a map or a list before 'a', got a text" in done.stderr


def test_wrong_text_is_an_error_with_a_caret() -> None:
    done = invoke("stream", "run", "time | ")
    assert (done.exit_code, done.stderr.splitlines()[1:]) == (2, ["time | ", "       ^"])


def test_a_file_with_a_definition_is_a_topology_for_all_commands(tmp_path: Path) -> None:
    file = tmp_path / "words.stream"
    file.write_text("trigger --maxMessages=1\n | log\n")
    assert load(str(file)).name == "words"
    assert invoke("validate", str(file)).output == f"{file} is valid: 1 spout, 1 bolt\n"
    assert "trigger" in invoke("explain", str(file)).output
    assert collect(str(file)).files == {"words.stream": file.read_bytes()}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "not UTF-8"), (b"time |", "XD103E: .*pos 6"), (b" " * 300_000, "Expected at most 65536 characters")],
)
def test_a_file_that_is_no_stream(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.stream").write_bytes(content)
    with pytest.raises(LoadError, match=message):
        load(str(tmp_path / "x.stream"))


def test_validate() -> None:
    done = invoke("stream", "validate", "time | log")
    assert (done.exit_code, done.output) == (0, "stream is valid: time | log\n")
    done = invoke("stream", "validate", "--json", "time | logg")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["problems"][0].startswith("XD112E: (pos 7): Expected a sink here")


def test_module_list_and_info() -> None:
    listed = json.loads(invoke("module", "list", "--json").stdout)["modules"]
    shown = json.loads(invoke("module", "info", "sink:log", "--json").stdout)["modules"]
    assert shown == [module for module in listed if module["name"] == "log"]
    assert [option["name"] for option in shown[0]["options"]] == ["name", "expression", "level"]
    assert invoke("module", "info", "gone").exit_code == 2
    assert "--fixedDelay (number, default: 1)" in invoke("module", "info", "time").output


def test_a_message_that_fails_becomes_a_dead_letter(tmp_path: Path) -> None:
    letters, done = tmp_path / "letters", tmp_path / "done"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text('{"n": 1}\nnone\n{"n": 2}\n')
    text = f"from:file --dir='{tmp_path / 'in'}' --once=true | json-to-tuple | transform --expression=payload.n"
    run = invoke(
        *("stream", "run", "--in-process", "--quiet", "--dead-letters", str(letters), "--attempts", "1"),
        f"{text} | to:file --dir='{done}'",
    )
    assert run.exit_code == 0, run.output
    assert written(done) == [{"payload": 1}, {"payload": 2}]
    assert written(letters) == [{"payload": "none", "headers": {"file_name": "a"}}]


def written(folder: Path) -> list[object]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def test_a_record_of_kafka_becomes_a_dead_letter() -> None:
    record = make_tuple(["t", 0, 7, b"k", b"a\xff", 1, [], "failed", 3], list(DEAD_LETTER_FIELDS))
    done = run_bolt(Letter(), [record, make_tuple(["p", {"h": 1}], ["payload", "headers"])])
    headers = {"kafka_topic": "t", "kafka_partition": 0, "kafka_offset": 7, "kafka_timestamp": 1, "kafka_key": "k"}
    assert done.values() == [("a\\xff", {**headers, "reason": "failed", "failures": 3}), ("p", {"h": 1})]


def test_dead_letters_have_ids_of_their_own(tmp_path: Path) -> None:
    dead_letters = DeadLetters(str(tmp_path))
    text = "time | log"
    assert sorted(build(parse_stream(text), text, dead_letters).bolts) == ["dead-letter", "dead-letters", "log"]
    text = "time | dead-letter:log"
    with pytest.raises(DslError) as caught:
        build(parse_stream(text), text, dead_letters)
    assert (caught.value.code, caught.value.position) == (Code.NAME, 7)
    assert invoke("stream", "run", "--attempts", "2", "time | log").exit_code == 2


def test_a_module_whose_messages_keep_their_history_has_a_bolt_behind_it() -> None:
    text = "time | filter | log"
    tracked = {"time": "c1", "filter": "c1", "log": "c1"}
    topology = build(parse_stream(text, "ticktock"), text, tasks={"filter": 2}, tracked_in=tracked)
    assert sorted(topology.bolts) == ["filter", "filter..history", "log", "time..history"]
    assert [topology[name].parallelism for name in ("time", "filter", "log")] == [1, 2, 1]


def test_the_history_of_a_message_grows_and_what_came_from_outside_is_not_taken_for_one() -> None:
    once = tracked({"a": 1, HISTORY: "forged"}, "s.source.time.1", "c1", 0.0)
    twice = tracked(once, "s.processor.filter.1", "c2", 1.0)
    assert (twice["a"], [each["module"] for each in twice[HISTORY]]) == (1, ["s.source.time.1", "s.processor.filter.1"])
    assert len(once[HISTORY]) == 1
