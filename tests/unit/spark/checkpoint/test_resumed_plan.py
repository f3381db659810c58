"""What of a plan is kept when a topology is started again with another configuration."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark.api import TopologyBuilder
from storm_on_spark.plan.compile import place
from storm_on_spark.plan.fingerprint import compare, fingerprint
from storm_on_spark.spark.checkpoint.directory import Manifest
from storm_on_spark.spark.checkpoint.resumed import resumed_graph
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.testing import CaptureBolt, ListSpout


def resumed(first: dict[str, Any], then: dict[str, Any]) -> tuple[int, list[str]]:
    """The number of ackers after a restart with another configuration, and what is wrong with it."""
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["storm"], fields=["word"]))
    builder.set_bolt("show", CaptureBolt(), 2).shuffle_grouping("words")
    topology = builder.create_topology()
    old = fingerprint(place(compile_topology(topology, first).graph, 2))
    plan = resumed_graph(compile_topology(topology, then).graph, Manifest("words", "words-1", 2, old))
    return len(plan.acker_tasks), compare(old, fingerprint(place(plan, 2)))


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_the_number_of_workers_may_change_and_that_of_ackers_stays(before: int, after: int) -> None:
    assert resumed({"topology.workers": before}, {"topology.workers": after}) == (before, [])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"topology.acker.executors": 2}),
        ({}, {"topology.acker.executors": 0}),
        ({"topology.acker.executors": 0}, {}),
    ],
)
def test_another_number_of_ackers_that_is_asked_for_is_refused(first: dict[str, Any], then: dict[str, Any]) -> None:
    _, problems = resumed(first, then)
    assert any("acker" in problem for problem in problems), problems
