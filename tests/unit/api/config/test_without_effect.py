"""Settings that change nothing are named once; those that do, and defaults, are not."""

from __future__ import annotations

import pytest

from storm_on_spark import TopologyBuilder
from storm_on_spark.api.config import KEYS, Level, without_effect, without_effect_sentence
from storm_on_spark.launch.conf_text import read_file
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.testing import CaptureBolt, ListSpout


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_key_is_named_exactly_if_it_has_no_effect(key: str) -> None:
    found = without_effect({key: "something else than the default"})
    assert [each.name for each in found] == ([] if KEYS[key].level is Level.HONOURED else [key])
    assert without_effect({key: KEYS[key].default}) == without_effect({key: None}) == []


@pytest.mark.parametrize("name", ["storm.log.dir", "worker.childopts", "logviewer.port", "storm.messaging.x"])
def test_a_key_of_a_family_is_named(name: str) -> None:
    assert without_effect({name: None}) == []
    assert without_effect_sentence(without_effect({name: 1})) == (
        f"No effect here: {name} (accepted). `storm-spark config KEY` says why."
    )


def test_the_file_of_all_defaults_names_none(request: pytest.FixtureRequest) -> None:
    assert without_effect(read_file(request.config.rootpath / "conf" / "defaults.yaml")) == []


def test_one_sentence_names_those_of_components_too_and_not_a_hundred() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    show = builder.set_bolt("show", CaptureBolt()).shuffle_grouping("words")
    show.add_configuration("topology.tick.tuple.freq.secs", 3)
    show.add_configuration("topology.executor.receive.buffer.size", 7)
    compiled = compile_topology(builder.create_topology(), {"topology.priority": 3, "topology.workers": 2})
    assert compiled.warning == (
        "No effect here: topology.priority (planned), topology.executor.receive.buffer.size (accepted). "
        "`storm-spark config KEY` says why."
    )

    many = without_effect({key: object() for key in KEYS})
    sentence = without_effect_sentence(many)
    assert f"and {len(many) - 8} more" in sentence
    assert sentence.count("(planned)") == 8, "what is missing comes before what has nothing to act on"
