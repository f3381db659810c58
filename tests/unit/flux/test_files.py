"""Flux files and the topologies that they describe."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.api import Topology
from storm_on_spark.connectors.kafka import FirstPollOffsetStrategy, ProcessingGuarantee
from storm_on_spark.flux import FluxError, Substitution, substituting
from storm_on_spark.flux.properties import parse_properties, read_properties
from storm_on_spark.launch.loader import load
from storm_on_spark.testing import make_tuple

TOPOLOGIES: dict[str, str] = {
    "all_groupings": """\
spout words (Streams, x2, 4 tasks) -> (word), errors(text), direct(text) direct
basic_bolt shuffle (Bolt, x3) <- words shuffle -> (word)
basic_bolt local (Bolt, x1) <- shuffle local_or_shuffle -> (word)
basic_bolt fields (Bolt, x1) <- words fields(word) -> (word)
basic_bolt all (Bolt, x1) <- words:errors all -> (word)
basic_bolt global (Bolt, x1) <- words:errors global -> (word)
basic_bolt none (Bolt, x1) <- words none -> (word)
basic_bolt direct (Bolt, x1) <- words:direct direct -> (word)
basic_bolt custom (Bolt, x1) <- words custom(First) -> (word)
basic_bolt first (Bolt, x2) <- words custom(NGrouping) -> (word)
basic_bolt partial (Bolt, x2) <- words partial_key(word) -> (word)""",
    "diamond": """\
spout left (Words, x1) -> (word)
spout right (Words, x2) -> (word)
basic_bolt a (Bolt, x1) <- left shuffle -> (word)
basic_bolt b (Bolt, x1) <- right shuffle -> (word)
basic_bolt join (Bolt, x1) <- a fields(word), b fields(word) -> (word)""",
    "storm_names": """\
spout words (TestWordSpout, x1) -> (word)
basic_bolt count (TestWordCounter, x1) <- words fields(word) -> (word, count)
bolt sum (TestAggregatesCounter, x1) <- count global -> (agg-global)
bolt all (TestGlobalCount, x1) <- sum global -> (global-count)
basic_bolt log (LogInfoBolt, x1) <- count shuffle""",
    "kafka": """\
spout kafka-spout (PlainKafkaSpout, x1) -> (topic, partition, offset, key, value)
bolt kafka-bolt (KafkaBolt, x1) <- kafka-spout shuffle""",
    "windows": """\
spout words (Words, x1) -> (word)
bolt windows (Windows, x1) <- words shuffle -> (number)""",
    "source_method": """\
spout words (Words, x1) -> (word)
basic_bolt bolt (Bolt, x2) <- words shuffle -> (word)""",
    "includes": """\
spout words (Words, x1) -> (word)
basic_bolt bolt (Bolt, x1) <- words shuffle -> (word)
basic_bolt more (Bolt, x1) <- words shuffle -> (word)""",
    "overrides": """\
spout words (Words, x7) -> (word)
basic_bolt bolt (Bolt, x1) <- words shuffle -> (word)
basic_bolt more (Bolt, x1) <- words shuffle -> (word)""",
}


def loaded(path: Path) -> tuple[str, dict[str, Any], Topology]:
    target = load(str(path))
    return target.name, target.conf, target.topology(target.conf)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_file_describes_a_topology(files: Path, name: str) -> None:
    assert str(loaded(files / f"{name}.yaml")[2]) == TOPOLOGIES[name]


def test_storms_kafka_classes_are_configured_as_in_java(files: Path) -> None:
    _, _, topology = loaded(files / "kafka.yaml")
    config = vars(topology["kafka-spout"].component)["_config"]
    assert (config.bootstrap_servers, config.topics) == (("localhost:9092",), ("words", "more"))
    assert config.group_id == "flux"
    assert config.first_poll_offset_strategy is FirstPollOffsetStrategy.EARLIEST
    assert config.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE
    assert config.value_deserializer(b"\xff") == b"\xff"
    assert config.key_deserializer(bytes(7) + b"\x05") == 5
    bolt = vars(topology["kafka-bolt"].component)
    assert (bolt["_servers"], bolt["_properties"]) == (("localhost:9092",), {"acks": 1, "linger_ms": 3})
    tup = make_tuple(["be", "or"], ["word", "next"])
    assert (bolt["_selector"](tup), bolt["_mapper"](tup)) == ("counts", ("be", "or"))


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_interpreted_file_describes_the_same_topology(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(files)  # the copy is not beside the classes
    target = load(str(files / f"{name}.yaml"))
    copy = tmp_path / f"{name}.yaml"
    copy.write_bytes(target.interpreted())  # type: ignore[attr-defined]
    again = load(str(copy))
    assert (again.name, again.conf) == (target.name, target.conf)
    assert str(again.topology(again.conf)) == TOPOLOGIES[name]


def test_sizes_and_configuration_of_components(files: Path) -> None:
    _, conf, topology = loaded(files / "all_groupings.yaml")
    assert conf == {"topology.workers": 2, "my.own.value": [1, "two", 3.5]}
    assert topology["words"].conf == {
        "topology.max.spout.pending": 100,
        "topology.component.resources.onheap.memory.mb": 128.0,
        "topology.component.resources.offheap.memory.mb": 64.0,
        "topology.component.cpu.pcore.percent": 50.0,
        "topology.tasks": 4,
    }
    assert topology["shuffle"].conf == {}


def test_arguments_properties_methods_and_references(files: Path) -> None:
    topology = loaded(files / "objects.yaml")[2]
    spout, bolt = topology["words"].component, topology["configured"].component
    assert (spout.words, spout.rounds) == (["x", "y"], 2)  # type: ignore[attr-defined]
    text, number, foo, several, nested = bolt.args  # type: ignore[attr-defined]
    assert (text, number, foo.name, [part.name for part in several]) == ("text", 1, "foo", ["foo", "inner"])
    assert nested["nested"][0] is several[1]
    # A component is one object, however often it is referred to.
    assert several[0] is foo
    assert (bolt.batchSize, bolt.limit, bolt.mode) == (5, foo, [foo])  # type: ignore[attr-defined]
    assert bolt.calls == [  # type: ignore[attr-defined]
        ("setDelimiter", "|"),
        ("set_field_names", ["a", "b"]),
        ("with_foo", (1, foo)),
        ("with_none",),
    ]
    assert topology["factory"].component.args == ("made", 1, foo)  # type: ignore[attr-defined]
    assert topology["plain-factory"].component.args == ("made",)  # type: ignore[attr-defined]
    mode, ratio, pair = topology["typed"].component.args  # type: ignore[attr-defined]
    assert (mode.name, ratio, type(ratio), pair) == ("FAST", 1.0, float, (1, 2))


def test_a_topology_source_gets_the_configuration(files: Path) -> None:
    name, _, topology = loaded(files / "source.yaml")
    assert name == "from-source"
    assert topology["bolt"].parallelism == 3
    assert topology["bolt"].component.args == (7,)  # type: ignore[attr-defined]


def test_a_bolt_without_streams_is_left_out_and_told(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        topology = loaded(files / "diamond.yaml")[2]
    assert "unused" not in topology
    assert 'bolt "unused" is left out: no stream leads to it' in caplog.text


def test_includes_add_and_override(files: Path) -> None:
    name, conf, topology = loaded(files / "includes.yaml")
    assert (name, conf) == ("including", {"topology.workers": 2, "my.other": 1})
    assert topology["more"].component.args[0].name == "own"  # type: ignore[attr-defined]
    name, conf, topology = loaded(files / "overrides.yaml")
    assert (name, conf) == ("included", {"topology.workers": 4, "my.other": 1})


def test_placeholders(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUX_TEST_HOME", "/home/flux")
    values = Substitution.of(read_properties(files / "values.properties"), environment=True)
    with substituting(values):
        name, conf, topology = loaded(files / "substitution.yaml")
    assert name == "substituted"
    assert conf == {
        "topology.workers": 3,
        "my.home": "/home/flux",
        "my.list": ["one", "two"],
        "my.first": "one",
        "my.both": "substituted-3",
    }
    assert topology["words"].parallelism == 3
    assert topology["bolt"].component.args == ("two",)  # type: ignore[attr-defined]
    # Without the options nothing is substituted, and that is said.
    with pytest.raises(FluxError, match=r"substitution.yaml:10:\d+: .* --filter FILE"):
        load(str(files / "substitution.yaml"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  b c  \n", {"a": "b c  "}),
        ("# no\n! no\n\n", {}),
        ("a=\\u0041\\n\\t\\\\x\n", {"a": "A\n\t\\x"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=1\\\n   2\\\n\t3\nb=4", {"a": "123", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_in_java(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found
