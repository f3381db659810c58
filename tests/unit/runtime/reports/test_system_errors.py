"""Errors of what is no component of a topology's are errors of the topology."""

from __future__ import annotations

from storm_on_spark.api import BaseBasicBolt, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.streams.constants import ACKER_COMPONENT
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.batches.metrics.counters import Metrics
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.testing import ListSpout


class Ends(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def test_errors_of_the_acker_are_kept_beside_the_components() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([1]))
    builder.set_bolt("ends", Ends()).shuffle_grouping("numbers")
    metrics = Metrics(compile_graph(builder.create_topology(), effective_conf({})))
    assert metrics.system_errors() == ()
    for number in range(30):
        metrics.add_failure(Failure(ACKER_COMPONENT, 100 + number, f"lost {number}", "", False))
    metrics.add_failure(Failure("ends", 2, "no", "", False))
    kept = metrics.system_errors()
    assert {error.component for error in kept} == {ACKER_COMPONENT}
    assert [error.message for error in kept] == [f"lost {number}" for number in range(10, 30)], "the last few"
    assert [error.message for error in metrics.components()["ends"].errors] == ["no"]
