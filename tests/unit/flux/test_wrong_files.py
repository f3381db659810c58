"""What is wrong with a Flux file, and where: each row is a file, the place, and what the sentence has to name."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.flux import FluxError, Substitution, substituting
from storm_on_spark.flux.definitions import topology_of
from storm_on_spark.flux.nodes import parse
from storm_on_spark.flux.properties import MAX_BYTES, parse_properties
from storm_on_spark.flux.reading import substituted
from storm_on_spark.launch.bounded_yaml import MAX_ALIASES, MAX_DEPTH
from storm_on_spark.launch.loader import load

SPOUTS = "spouts: [{id: words, className: flux_parts.Words}]\n"
BOLTS = "bolts: [{id: bolt, className: flux_parts.Bolt}]\n"
STREAMS = "streams: [{from: words, to: bolt, grouping: {type: SHUFFLE}}]\n"
REST = SPOUTS + BOLTS + STREAMS


def with_bolt(text: str) -> str:
    return f"bolts: [{{id: bolt, className: {text}}}]\n{SPOUTS}{STREAMS}"


def with_grouping(text: str) -> str:
    return f"streams: [{{from: words, to: bolt, grouping: {text}}}]\n{SPOUTS}{BOLTS}"


WRONG: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # YAML
    "empty": ("", "1:1", ("there is nothing in it",)),
    "a word": ("hello", "1:1", ("a Flux file must be a mapping", "'hello'")),
    "a list": ("- 1", "1:1", ("a Flux file must be a mapping", "a list")),
    "broken": ("name: [a\nbolts: 1", "2:6", ("expected ',' or ']'",)),
    "tab": ("name:\n\t- a", "2:1", ("cannot start any token",)),
    "control": ("name: \x01", "1:7", ("U+0001",)),
    "control in an id": (
        'spouts: [{id: "a\\e[2J", className: flux_parts.Words}]',
        "1:15",
        ("the id of a spout must have no control characters, not 'a\\x1b[2J'",),
    ),
    "two documents": ("name: a\n---\nname: b", "2:1", ("another document",)),
    "python tag": ("name: !!python/object/apply:os.system [ls]", "1:7", ("!!python/object/apply:os.system",)),
    "own tag": ("name: !secret x", "1:7", ("the tag !secret is not allowed",)),
    "binary": ("config: {a: !!binary aGk=}", "1:13", ("!!binary",)),
    "set": ("config: !!set {a}", "1:9", ("!!set",)),
    "twice": ("name: a\nname: b", "2:1", ('"name" is there twice',)),
    "number as key": ("config: {1: 2}", "1:10", ("a key must be a string, not 1",)),
    "list as key": ("config: {[a]: 2}", "1:10", ("a key must be a string",)),
    "bad int": ("config: {a: !!int x}", "1:13", ("'x' is no int",)),
    "bad merge": ("config: {<<: 3}", "1:14", ("<< takes a mapping",)),
    "itself": ("config: &a {b: *a}", "1:9", ("levels deep",)),
    "deep": ("config: " + "[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5), "1:59", ("levels deep",)),
    "very deep": ("config: " + "[" * 100_000, "1:59", ("levels deep",)),
    "aliases": ("config: {a: &a [1], b: [" + "*a, " * (MAX_ALIASES + 1) + "]}", "1:225", ("aliases",)),
    "bomb": (
        "config:\n  a: &a [1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(
            f"  {b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
        ),
        "2:19",
        ("more than 100,000 values",),
    ),
    # Keys
    "unknown key": ("nmae: x\n" + REST, "1:1", ('no key "nmae"', 'Did you mean "name"?')),
    "name": ("name: 3\n" + REST, "1:7", ("the name of a topology must be a string", "3")),
    "slash": ("name: a/b\n" + REST, "1:7", ("no '/'",)),
    "config": ("config: 3\n" + REST, "1:9", ("config must be a mapping",)),
    "config key": ("config:\n  topology.wrokers: 3\n" + REST, "2:21", ('Did you mean "topology.workers"?',)),
    "config value": ("config:\n  topology.workers: x\n" + REST, "2:21", ("topology.workers must be an int",)),
    "spouts": ("spouts: 3", "1:9", ("spouts must be a list",)),
    "no streams": (SPOUTS + BOLTS, "1:1", ("there are no streams",)),
    "no id": ("spouts: [{className: a.B}]", "1:10", ("a spout needs the key id",)),
    "no class": ("spouts: [{id: a}]", "1:10", ("a spout needs the key className",)),
    "spout key": ("spouts: [{id: a, classname: a.B}]", "1:18", ('no key "classname"', 'Did you mean "className"?')),
    "same ids": ("spouts:\n- {id: a, className: a.B}\n- {id: a, className: a.B}", "3:8", ("taken by line 2",)),
    "id of both": (SPOUTS + BOLTS.replace("id: bolt", "id: words") + STREAMS, "2:14", ("a spout has the id",)),
    "parallelism": ("spouts: [{id: a, className: a.B, parallelism: 0}]", "1:47", ("at least 1, not 0",)),
    "parallelism word": ("spouts: [{id: a, className: a.B, parallelism: two}]", "1:47", ("not 'two'",)),
    "numTasks": ("spouts: [{id: a, className: a.B, numTasks: -2}]", "1:44", ("numTasks",)),
    "cpuLoad": ("spouts: [{id: a, className: a.B, cpuLoad: much}]", "1:43", ("cpuLoad must be a number",)),
    "off heap alone": (with_bolt("flux_parts.Bolt, offHeapMemoryLoad: 3"), "1:67", ("needs onHeapMemoryLoad",)),
    "component conf": (with_bolt("flux_parts.Bolt, config: {topology.workers: 3}"), "1:75", ("whole topology",)),
    "both ways": (with_bolt("flux_parts.Bolt, factory: make, constructorArgs: [1]"), "1:80", ("or by a factory",)),
    "factoryArgs": (with_bolt("flux_parts.Bolt, factoryArgs: [1]"), "1:61", ("there is no factory",)),
    "property": (with_bolt("flux_parts.Bolt, properties: [{name: a}]"), "1:61", ("value, ref and reflist, not none",)),
    "hooks": ("workerHooks: [{id: a, className: a.B}]\n" + REST, "1:14", ("worker hooks are not supported",)),
    "source and spouts": ("topologySource: {className: a.B}\n" + SPOUTS, "1:17", ("there are spouts too",)),
    # Streams
    "from": (with_grouping("{type: ALL}").replace("from: words", "from: wrods"), "1:18", ('Did you mean "words"?',)),
    "to": (with_grouping("{type: ALL}").replace("to: bolt", "to: words"), "1:29", ("can't be sent to a spout",)),
    "no grouping": (with_grouping("null"), "1:11", ("a stream needs the key grouping",)),
    "type": (with_grouping("{type: SHUFLE}"), "1:52", ('no grouping "SHUFLE"', 'Did you mean "SHUFFLE"?')),
    "partial key": (with_grouping("{type: PARTIAL_KEY}"), "1:52", ("org.apache.storm.grouping.PartialKeyGrouping",)),
    "no fields": (with_grouping("{type: FIELDS}"), "1:45", ("needs args",)),
    "fields of all": (with_grouping("{type: ALL, args: [a]}"), "1:63", ("this one is ALL",)),
    "field twice": (with_grouping("{type: FIELDS, args: [a, a]}"), "1:66", ('field "a" occurs twice',)),
    "no custom class": (with_grouping("{type: CUSTOM}"), "1:45", ("needs a customClass",)),
    "custom class": (with_grouping("{type: ALL, customClass: {className: a.B}}"), "1:70", ("type CUSTOM, not ALL",)),
    "no grouping class": (
        with_grouping("{type: CUSTOM, customClass: {className: flux_parts.Part}}"),
        "1:85",
        ("CustomStreamGrouping",),
    ),
    # Classes
    "no module": (with_bolt("no_such_module.Bolt"), "1:31", ("there is no module no_such_module", "Java")),
    "no package": (with_bolt("com.example.WordCountBolt"), "1:31", ("there is no module com.example", "Java")),
    "no such class": (with_bolt("flux_parts.Bold"), "1:31", ("flux_parts has no class Bold", 'Did you mean "Bolt"?')),
    "no dots": (with_bolt("Bolt"), "1:31", ("package.module.Class",)),
    "no name": (with_bolt('"a b.C"'), "1:31", ("package.module.Class",)),
    "function": (with_bolt("os.path.join"), "1:31", ("os.path.join is not a class",)),
    "no bolt": (with_bolt("flux_parts.Part"), "1:31", ('bolt "bolt"', "Part")),
    "abstract": (with_bolt("storm_on_spark.api.BaseBasicBolt"), "1:31", ("abstract",)),
    "shell": (
        with_bolt("org.apache.storm.flux.wrappers.bolts.FluxShellBolt, constructorArgs: [node split.js]"),
        "1:31",
        ("a list of strings", "node split.js"),
    ),
    "kafka": (with_bolt("org.apache.storm.kafka.bolt.Other"), "1:31", ("is a Java class", "Kafka")),
    "java": (with_bolt("java.util.ArrayList"), "1:31", ("is a Java class", "YAML")),
    "storm": (with_bolt("org.apache.storm.starter.bolt.PrinterBolt"), "1:31", ("is a Java class", "Python class")),
    "raises": (with_bolt("flux_parts.Raises"), "1:31", ("flux_parts.py", "ValueError: no such luck")),
    "arguments": (with_bolt("flux_parts.Typed, constructorArgs: [FAST]"), "1:31", ("missing", "'ratio'")),
    "enum": (with_bolt("flux_parts.Typed, constructorArgs: [FATS, 1]"), "1:67", ('no member "FATS"', '"FAST"')),
    "method": (
        with_bolt("flux_parts.Bolt, configMethods: [{name: withFo}]"),
        "1:71",
        ('no method "withFo"', "with_foo"),
    ),
    "method arguments": (
        with_bolt("flux_parts.Bolt, configMethods: [{name: withNone, args: [1]}]"),
        "1:71",
        ("with_none", "1 arguments"),
    ),
    "private method": (with_bolt("flux_parts.Bolt, configMethods: [{name: __init__}]"), "1:71", ("no method",)),
    "no property": (
        with_bolt("flux_parts.Bolt, properties: [{name: limt, value: 1}]"),
        "1:68",
        ('Did you mean "limit"?',),
    ),
    "private property": (with_bolt("flux_parts.Bolt, properties: [{name: _hidden, value: 1}]"), "1:68", ("neither",)),
    "no factory": (with_bolt("flux_parts.Bolt, factory: mkae"), "1:57", ('no method "mkae"', 'Did you mean "make"?')),
    "no component": (with_bolt("flux_parts.Bolt, constructorArgs: [{ref: foo}]"), "1:72", ('no component "foo"',)),
    "reference": (with_bolt("flux_parts.Bolt, constructorArgs: [{ref: 3}]"), "1:72", ("a string",)),
    "reflist": (with_bolt("flux_parts.Bolt, constructorArgs: [{reflist: foo}]"), "1:76", ("reflist takes a list",)),
    "circle": (
        "components:\n- {id: a, className: flux_parts.Part, constructorArgs: [{ref: b}]}\n"
        "- {id: b, className: flux_parts.Part, constructorArgs: [{ref: a}]}\n" + REST,
        "3:63",
        ("in a cycle: a -> b -> a",),
    ),
    "source method": (
        "topologySource: {className: flux_parts.Source, methodName: gone}",
        "1:60",
        ('no method "gone"',),
    ),
    "source result": ("topologySource: {className: flux_parts.Source, methodName: wrong}", "1:60", ("3", "Topology")),
    # Includes
    "no file": ("includes: [{file: gone.yaml}]\n" + REST, "1:19", ("there is no file 'gone.yaml'",)),
    "out of resources": ("includes: [{file: ../a.yaml, resource: true}]\n" + REST, "1:19", ("by ..",)),
    "flag": ("includes: [{file: a.yaml, override: 1}]\n" + REST, "1:37", ("true or false",)),
    "nested includes": ("includes: [{file: nested.yaml}]\n" + REST, "nested.yaml:1:19", ("include no others",)),
    "wrong include": ("includes: [{file: wrong.yaml}]\n" + REST, "wrong.yaml:2:1", ('no key "blots"',)),
    # Placeholders
    "property missing": ("name: ${nmae}\n" + REST, "1:7", ("the file of properties has no nmae",)),
    "variable missing": ("name: ${ENV-NO_SUCH_VARIABLE}\n" + REST, "1:7", ("no variable NO_SUCH_VARIABLE",)),
    "element missing": ("name: ${hosts[2]}\n" + REST, "1:7", ("hosts has 2 elements",)),
    "line break": ("name: ${lines}\n" + REST, "1:7", ("line break",)),
    "behind a value": ("config: {a: ${long}, b: !x y}\n" + REST, "1:25", ("the tag !x",)),
    "in a value": ("config: {a: ${tag}}\n" + REST, "1:13", ("the tag !x",)),
}
VALUES = Substitution(
    {"hosts": "[a, b]", "lines": "a\nb", "long": "x" * 100, "tag": "[1, !x y]"}, {"HOME": "/home"}
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, files: Path) -> Path:
    (tmp_path / "flux_parts.py").write_text((files / "flux_parts.py").read_text())
    (tmp_path / "nested.yaml").write_text("includes: [{file: wrong.yaml}]\n")
    (tmp_path / "wrong.yaml").write_text("name: x\nblots: []\n")
    return tmp_path


def build(path: str, values: Substitution = VALUES) -> None:
    with substituting(values):
        target = load(path)
        target.topology(target.conf)


@pytest.mark.parametrize("name", WRONG)
def test_an_error_has_its_place_and_a_caret(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content, place, words = WRONG[name]
    monkeypatch.chdir(folder)
    (folder / "a.yaml").write_text(content)
    with pytest.raises(FluxError) as caught:
        build("a.yaml")
    text = str(caught.value)
    file = "" if ".yaml" in place else "a.yaml:"
    assert text.startswith(f"{file}{place}: "), text
    assert all(word in text for word in words), text
    if content:
        assert text.splitlines()[-1].strip() == "^", text
        # The caret is below something.
        line, caret = text.splitlines()[-2:]
        assert line[len(caret) - 1 : len(caret)].strip() or name in ("tab", "control"), text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"\x80\x81", "not UTF-8 text"), (b"a: " + b"x" * MAX_BYTES, "larger than")],
    ids=["binary", "huge"],
)
def test_what_is_no_text(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(FluxError, match=word):
        load(str(tmp_path / "a.yaml"))


def test_a_stream_twice_names_the_first_line(folder: Path) -> None:
    stream = "- {from: words, to: bolt, grouping: {type: SHUFFLE}}\n"
    (folder / "a.yaml").write_text(f"{SPOUTS}{BOLTS}streams:\n{stream}{stream}")
    with pytest.raises(FluxError, match=r"a.yaml:5:3: .* by line 4; a bolt gets each stream once"):
        load(str(folder / "a.yaml"))


def test_lines_count_as_in_yaml() -> None:
    text = "a: 1\r\nb: 2\rc: 3\nd: 4\u2028e: !x y"
    with pytest.raises(FluxError, match=r"^a\.yaml:5:4: the tag !x"):
        parse(substituted(text, "a.yaml", VALUES), VALUES)


def test_a_wrong_escape_of_a_property() -> None:
    with pytest.raises(FluxError, match=r"properties:2:1: \\u must be followed by four hexadecimal digits"):
        parse_properties("a=1\nb=\\u00zz")


@pytest.mark.parametrize(
    "content",
    [
        "name: [${ENV-TOKEN}\nbolts: 1\n" + REST,
        "config: {topology.workers: '${ENV-TOKEN}'}\n" + REST,
        SPOUTS.replace("}]", ", parallelism: '${ENV-TOKEN}'}]").replace("[{", "[ {") + BOLTS + STREAMS,
        with_bolt("flux_parts.Typed, constructorArgs: ['${ENV-TOKEN}', 1]"),
        with_bolt("'flux_parts.${ENV-TOKEN}'"),
    ],
)
def test_values_of_the_environment_are_not_shown(folder: Path, content: str) -> None:
    (folder / "a.yaml").write_text(content)
    values = Substitution({}, {"TOKEN": "s3cret"})
    with pytest.raises(FluxError) as caught:
        build(str(folder / "a.yaml"), values)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in repr(values)


_PIECES = st.sampled_from(
    ["name", "config", "spouts", "id", "className", ": ", "\n", "- ", "  ", "{", "}", "[", "]", ", ", "&a ", "*a",
     "<<", "!!str ", "'", '"', "|", ">", "#", "${x}", "${", "1", "null", "é", "\t", "%", "---", "? ", "ref", "grouping"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=40).map("".join)))
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_is_a_definition_or_an_error_with_a_place(content: str) -> None:
    problem = None
    try:
        topology_of(parse(substituted(content, "a.yaml", VALUES), VALUES))
    except FluxError as error:
        problem = error
    assert problem is None or (problem.place is not None and str(problem).startswith(f"{problem.place}: "))


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _TEXTS)
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
).filter(lambda value: "${" not in str(value))


@given(_DOCUMENTS)
@settings(max_examples=examples(100), deadline=None)
def test_what_is_written_is_read(value: object) -> None:
    text = yaml.safe_dump({"value": value}, sort_keys=False)
    assert parse(substituted(text, "a.yaml", VALUES), VALUES).plain() == {"value": value}
