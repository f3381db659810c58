from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichSpout,
    ComponentKind,
    ComponentSpec,
    Fields,
    FieldsGrouping,
    GlobalStreamId,
    InvalidTopologyError,
    ShuffleGrouping,
    StreamSpec,
    Topology,
    TopologyBuilder,
)


@dataclasses.dataclass
class Lines(BaseRichSpout):
    path: str = "-"

    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line"))
        declarer.declare_stream("late", Fields("line", "secs"), direct=True)


@dataclasses.dataclass
class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def word_count() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 2).set_num_tasks(4).add_configuration("my.set", {"a"})
    builder.set_bolt("count", Count(), 3).fields_grouping("lines", "line").shuffle_grouping("lines", "late")
    return builder.create_topology()


def test_spouts_and_bolts() -> None:
    topology = word_count()
    assert list(topology.spouts) == ["lines"]
    assert list(topology.bolts) == ["count"]
    assert topology["lines"].is_spout
    assert not topology["count"].is_spout
    assert "lines" in topology
    assert "line" not in topology
    assert len(topology) == 2


def test_topologies_pickle_and_are_equal_by_value() -> None:
    topology = word_count()
    again = pickle.loads(pickle.dumps(topology))
    assert again == topology == word_count()
    assert again["lines"].component == Lines()
    assert again["lines"].component is not topology["lines"].component


def test_a_difference_anywhere_makes_topologies_differ() -> None:
    topology = word_count()
    changed = dataclasses.replace(topology["count"], inputs=((GlobalStreamId("lines"), ShuffleGrouping()),))
    assert Topology({**topology.components, "count": changed}) != topology


def test_nothing_in_a_topology_can_be_changed() -> None:
    spec = word_count()["lines"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.parallelism = 3  # type: ignore[misc]
    for mapping in (spec.conf, spec.streams, word_count().components):
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]


def test_a_spec_keeps_no_reference_to_what_it_was_made_from() -> None:
    conf: dict[str, object] = {}
    streams: dict[str, StreamSpec] = {}
    spec = ComponentSpec("x", ComponentKind.BOLT, Count(), 1, None, conf, streams, ())
    conf["my.key"] = 1
    streams["default"] = StreamSpec(Fields())
    assert (dict(spec.conf), dict(spec.streams)) == ({}, {})


def test_to_dict_is_json() -> None:
    assert json.loads(json.dumps(word_count().to_dict())) == {
        "components": [
            {
                "id": "lines",
                "kind": "spout",
                "class": f"{__name__}.Lines",
                "parallelism": 2,
                "num_tasks": 4,
                "conf": {"topology.tasks": 4, "my.set": "{'a'}"},
                "streams": {
                    "default": {"fields": ["line"], "direct": False},
                    "late": {"fields": ["line", "secs"], "direct": True},
                },
                "inputs": [],
            },
            {
                "id": "count",
                "kind": "basic_bolt",
                "class": f"{__name__}.Count",
                "parallelism": 3,
                "num_tasks": None,
                "conf": {},
                "streams": {},
                "inputs": [
                    {"component": "lines", "stream": "default", "grouping": "fields(line)"},
                    {"component": "lines", "stream": "late", "grouping": "shuffle"},
                ],
            },
        ]
    }


def test_configuration_in_json_keeps_plain_values() -> None:
    conf = {"my.a": [1, (2.5, None)], "my.b": {3: True}, "my.c": Fields("x")}
    spec = ComponentSpec("x", ComponentKind.BOLT, Count(), 1, None, conf, {}, ())
    assert spec.to_dict()["conf"] == {"my.a": [1, [2.5, None]], "my.b": {"3": True}, "my.c": "Fields('x')"}


def test_str_has_a_line_per_component_and_repr_is_one_line() -> None:
    assert str(word_count()).splitlines() == [
        "spout lines (Lines, x2, 4 tasks) -> (line), late(line, secs) direct",
        "basic_bolt count (Count, x3) <- lines fields(line), lines:late shuffle",
    ]
    assert repr(word_count()) == "Topology(spouts=['lines'], bolts=['count'])"


def test_an_unknown_component_names_the_nearest() -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        word_count()["conut"]
    assert str(caught.value) == 'no component "conut"; there are: "lines", "count". Did you mean "count"?'
    assert caught.value.component == "conut"


def test_groupings_of_specs_are_objects() -> None:
    assert word_count()["count"].inputs[0] == (GlobalStreamId("lines"), FieldsGrouping(Fields("line")))
