"""Modules that users compose and upload: the registry, what becomes of them in a stream, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main
from storm_on_spark.xd.dsl import Code, DslError, parse_stream
from storm_on_spark.xd.fused import build
from storm_on_spark.xd.modules.local_registry import ComposedModule, LocalRegistry, ModuleRegistryError

SHOUT = """
from storm_on_spark import BaseBasicBolt, Fields
from storm_on_spark.xd.modules import ModuleDeclaration, Option

class Shout(BaseBasicBolt):
    def __init__(self, mark):
        self.mark = mark
        self.count = 0

    def execute(self, tup, collector):
        self.count += 1
        collector.emit([f"{tup['payload'].upper()}{self.mark * self.count}", tup["headers"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("payload", "headers"))

MODULE = ModuleDeclaration(
    "processor", "shout", "Makes payloads loud.", Shout, (Option("mark", "text", "!", "Stands behind."),)
)
"""


@pytest.fixture
def registry(home: Path) -> LocalRegistry:
    return LocalRegistry()


@pytest.fixture
def shout(tmp_path: Path) -> Path:
    file = tmp_path / "shout.py"
    file.write_text(SHOUT)
    return file


def module(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["module", *arguments])


def run(definition: str) -> Result:
    return CliRunner().invoke(main, ["stream", "run", "--in-process", "--quiet", definition])


def logged(definition: str) -> list[str]:
    """Returns what the sink `log` writes, without the times."""
    return [line[len("2026-11-27 13:56:10,123 ") :] for line in run(definition).stderr.splitlines()]


@pytest.mark.parametrize(
    ("definition", "type_"),
    [
        ("time | filter", "source"),
        ("filter | transform", "processor"),
        ("filter | log", "sink"),
        ("http | transform", "source"),
        ("transform | http --url=http://a/", "sink"),
    ],
)
def test_what_a_module_is_composed_of_says_its_type(registry: LocalRegistry, definition: str, type_: str) -> None:
    assert registry.compose("c", definition).type == type_
    assert LocalRegistry().find(type_, "c") == ComposedModule(type_, "c", definition)


@pytest.mark.parametrize(
    ("name", "definition", "message"),
    [
        ("c", "time | log", "of processors, or of processors and a sink; log is no processor"),
        ("c", "filter | gone", "gone is no sink"),
        ("c", "filter", "at least two modules"),
        ("c", "queue:a > filter | log", "without channels and taps"),
        ("a b", "filter | log", "expected a name of letters"),
        ("../c", "filter | log", "expected a name of letters"),
        ("file", "time | filter", "there is already a module source:file"),
        ("c", "filter | c", "XD110E"),
        ("c", "filter |", "XD103E"),
    ],
)
def test_what_makes_no_module(registry: LocalRegistry, name: str, definition: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.compose(name, definition)
    assert [found.name for found in registry.all() if isinstance(found, ComposedModule)] == []


def test_a_composed_module_in_a_stream(registry: LocalRegistry) -> None:
    registry.compose("words", "splitter --expression=\"payload.split(' ')\" | filter")
    registry.compose("two", "words --filter.expression='payload.length() == 2' | transform")
    text = "trigger --payload='to be or not' --maxMessages=1 | a:two --transform.expression=payload+'!' | log"
    assert sorted(build(parse_stream(text), text).bolts) == ["a.transform", "a.words.filter", "a.words.splitter", "log"]
    assert logged(f"s = {text}") == [f"INFO sink.s - {word}!" for word in ("to", "be", "or")]
    text = text.replace("--transform.", "--words.filter.expression=\"payload=='be'\" --transform.")
    assert logged(f"s = {text}") == ["INFO sink.s - be!"]


@pytest.mark.parametrize(
    ("options", "code", "position"),
    [
        ("--expression=true", Code.UNKNOWN_OPTION, 11),
        ("--gone.expression=true", Code.UNKNOWN_OPTION, 11),
        ("--words.gone=true", Code.UNKNOWN_OPTION, 11),
        ("--words.filter.gone=true", Code.UNKNOWN_OPTION, 11),
        ("--words.filter.expression='1 +'", Code.BAD_VALUE, 41),
        ("", Code.MISSING_OPTION, 7),
    ],
)
def test_errors_of_options_inside(registry: LocalRegistry, options: str, code: Code, position: int) -> None:
    registry.compose("words", "splitter | filter")
    registry.compose("two", "words | script" if not options else "words | transform")
    text = f"time | two {options} | log"
    with pytest.raises(DslError) as caught:
        build(parse_stream(text), text)
    assert (caught.value.code, caught.value.position) == (code, position)


def test_a_value_inside_that_makes_no_sense_points_at_the_composed_module(registry: LocalRegistry) -> None:
    registry.compose("c", "filter | transform --expression='1 +'")
    text = "time | c | log"
    with pytest.raises(DslError, match=r"XD114E: \(pos 7\): c.transform: Expected a value"):
        build(parse_stream(text), text)


def test_modules_that_are_composed_of_each_other_have_an_end(registry: LocalRegistry, home: Path) -> None:
    registry.compose("a", "filter | transform")
    registry.compose("b", "a | transform")
    record = {"version": 1, "kind": "composed", "definition": "b | transform"}
    (home / "modules" / "processor" / "a.json").write_text(json.dumps(record))
    text = "time | b | log"
    with pytest.raises(DslError, match="at most 10 levels"):
        build(parse_stream(text), text)
    with pytest.raises(ModuleRegistryError, match="more than 10 levels"):
        registry.options(registry.find("processor", "b"))


def test_an_uploaded_module_in_a_stream(registry: LocalRegistry, shout: Path) -> None:
    assert registry.upload(shout).name == "shout"
    shout.unlink()
    registry.compose("louder", "shout | transform --expression=payload+'?'")
    found = logged("s = trigger --payload=a --maxMessages=2 --fixedDelay=0.001 | louder --shout.mark=x | log")
    assert found == ["INFO sink.s - Ax?", "INFO sink.s - Axx?"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("MODULE = 1", "expected a variable MODULE with a ModuleDeclaration"),
        ("", "expected a variable MODULE"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("raise SystemExit", "raised SystemExit"),
        ("def", "line 1: expected Python"),
        (SHOUT.replace('"shout"', '"filter"'), "there is already a module processor:filter"),
        (SHOUT.replace('"shout"', '"../x"'), "expected a name of letters"),
        (SHOUT.replace('"processor"', '"plumbing"'), "expected a variable MODULE"),
    ],
)
def test_what_can_not_be_uploaded(registry: LocalRegistry, shout: Path, content: str, message: str, home: Path) -> None:
    shout.write_text(content)
    with pytest.raises(ModuleRegistryError, match=message):
        registry.upload(shout)
    assert not home.joinpath("modules").exists(), "nothing half done"


def test_a_file_that_was_changed_is_not_executed(registry: LocalRegistry, shout: Path, home: Path) -> None:
    registry.upload(shout)
    (stored,) = (home / "modules" / "files").iterdir()
    stored.write_text(SHOUT + "raise SystemExit")
    with pytest.raises(ModuleRegistryError, match="was changed; delete and upload it again"):
        LocalRegistry().find("processor", "shout")
    text = "time | shout | log"
    with pytest.raises(DslError, match="was changed"):
        build(parse_stream(text), text)
    registry.delete("processor", "shout")
    assert list((home / "modules" / "files").iterdir()) == []


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"version": 1, "kind": "uploaded", "sha256": "../x"}'])
def test_a_record_that_is_none(registry: LocalRegistry, home: Path, record: str) -> None:
    (home / "modules" / "sink").mkdir(parents=True)
    (home / "modules" / "sink" / "x.json").write_text(record)
    with pytest.raises(ModuleRegistryError, match=r"module sink:x: .* can't be read"):
        registry.find("sink", "x")


def test_a_module_that_is_used_stays(registry: LocalRegistry) -> None:
    registry.compose("a", "filter | transform")
    registry.compose("b", "a | transform")
    with pytest.raises(ModuleRegistryError, match="processor:a can't be deleted: processor:b is composed of it"):
        registry.delete("processor", "a")
    registry.delete("processor", "b")
    registry.delete("processor", "a")
    for type_, name, message in (
        ("processor", "a", "no module"),
        ("sink", "log", "is built into"),
        ("x", "..", "no mo"),
    ):
        with pytest.raises(ModuleRegistryError, match=message):
            registry.delete(type_, name)  # type: ignore[arg-type]


def test_the_commands(shout: Path) -> None:
    made = module("compose", "two", "--definition", "filter | transform --expression=payload+1")
    assert made.output == "Successfully created module 'two' with type processor\n"
    assert module("upload", str(shout)).output == "Successfully uploaded module 'processor:shout'\n"
    listed: Any = json.loads(module("list", "--json").stdout)["modules"]
    assert {"two", "shout"} <= {found["name"] for found in listed}
    shown = module("info", "two").output
    assert "--transform.expression (expression, default: payload+1)" in shown
    assert module("delete", "two").output == "Successfully destroyed module 'two' with type processor\n"
    for wrong, code in (
        (("compose", "two", "--definition", "filter |"), 2),
        (("compose", "log", "--definition", "filter | log"), 2),
        (("upload", "gone.py"), 2),
        (("delete", "two"), 2),
        (("delete", "time"), 2),
        (("delete", "file"), 2),
        (("info", "two"), 2),
    ):
        done = module(*wrong)
        assert (done.exit_code, done.stderr[:7]) == (code, "Error: "), wrong


def test_a_module_that_can_not_be_loaded_hides_no_other(
    registry: LocalRegistry, shout: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry.upload(shout)
    registry.compose("words", "splitter | filter")
    (changed,) = home.rglob("files/*.py")
    changed.write_text(changed.read_text() + "#")
    names = {found.name for found in LocalRegistry().all("processor")}
    assert "words" in names
    assert "shout" not in names
    assert "was changed; delete and upload it again" in caplog.text
