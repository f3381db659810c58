"""What is broken is said in one sentence that names the component and the way out, and nothing stays running."""

from __future__ import annotations

import re
import threading
import time

import pytest
import topologies.broken
from pyspark.sql import SparkSession
from topologies.broken import BOLT_BROKEN, MISTAKES, SPOUT_BROKEN, Broken, RaisingBolt, RaisingSpout, line, mistakes
from topologies.parts import Numbers, Tally

from storm_on_spark import LocalCluster, TopologyBuilder, compile_topology
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError, StormError, TopologyFailedError
from storm_on_spark.api.text.traces import location
from storm_on_spark.testing import descendants


def reason(error: BaseException) -> str:
    return error.reason if isinstance(error, TopologyFailedError) else str(error)


def says(pattern: str, sentence: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), sentence) is not None


WITHOUT_SPARK = {
    "too many values",
    "a value that can't be grouped by",
    "a custom grouping that raises",
    "a custom grouping that chooses a wrong task",
}
"""Raised in next_tuple as others are; tests of collectors and of groupings have the same sentences."""


@pytest.mark.parametrize(
    "broken",
    [
        *(
            pytest.param(broken, id=what, marks=pytest.mark.soak if what in WITHOUT_SPARK else ())
            for what, broken in SPOUT_BROKEN.items()
        ),
        *(pytest.param(broken, id=f"{what} of a bolt") for what, broken in BOLT_BROKEN.items()),
    ],
)
def test_one_sentence_names_the_component_and_the_way_out(
    broken: Broken,
    local_cluster: LocalCluster,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    def run() -> None:
        local_cluster.submit_topology("broken", broken.conf, broken.build())
        local_cluster.await_completion("broken", 60)

    with pytest.raises(StormError) as caught:
        run()
    sentence = reason(caught.value)
    assert says(broken.sentence, sentence), sentence
    assert "\n" not in sentence
    out, err = capfd.readouterr()
    for noise in ("Traceback", "\tat ", "py4j", "Exception in thread"):
        assert noise not in out + err + caplog.text
    if broken.raised:
        assert isinstance(caught.value, TopologyFailedError)
        trace = caught.value.own_trace
        assert broken.raised in trace
        place = location(trace)
        assert place is not None
        assert place[0] == topologies.broken.__file__
        assert "storm_on_spark" not in re.sub(r"/\S+/tests/", "", trace)
        assert "Traceback" in caught.value.cause_text
        if broken.build is not SPOUT_BROKEN["open"].build:  # its topology never was
            info = local_cluster.get_topology_info("broken")
            assert info.error_trace == trace
            assert [error.trace for error in info.errors] == [trace]


class SlowToOpen(Numbers):
    """Opens when the other spout has failed long ago."""

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        time.sleep(2)


def test_a_spout_that_fails_before_another_is_open_has_a_topology_that_failed(local_cluster: LocalCluster, caplog):
    builder = TopologyBuilder()
    builder.set_spout("hasty", RaisingSpout("next_tuple"))
    builder.set_spout("slow", SlowToOpen(3))
    builder.set_bolt("bolt", Tally()).shuffle_grouping("hasty").shuffle_grouping("slow")
    local_cluster.submit_topology("hasty", {}, builder.create_topology())
    with pytest.raises(TopologyFailedError, match='component "hasty"'):
        local_cluster.await_completion("hasty", 60)
    assert local_cluster.get_topology_info("hasty").status == "FAILED"
    # Whoever doesn't wait for the end reads it, too.
    (said,) = [record.getMessage() for record in caplog.records if "hasty" in record.getMessage()]
    assert said.startswith('topology "hasty" failed: component "hasty" (task')


def test_mistakes_without_fail_fast_are_reported_and_end_nothing(local_cluster: LocalCluster):
    local_cluster.submit_topology("mistaken", {}, mistakes())
    assert local_cluster.await_completion("mistaken", 60)
    info = local_cluster.get_topology_info("mistaken")
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 0, 3)
    for name, sentence in MISTAKES.items():
        component = info.components[name]
        assert component.failed == 3
        assert info.components[f"{name}-end"].executed == 0
        message = component.errors[-1].message
        assert says(f'component "{name}" (task *) failed in execute: {sentence}', message), message


@pytest.mark.representative
def test_what_can_not_run_is_refused_before_anything_starts(local_cluster: LocalCluster):
    before = threading.enumerate()
    with pytest.raises(ConfigError, match=r"topology\.message\.timeout\.secs"):
        local_cluster.submit_topology("wrong", {"topology.mesage.timeout.secs": 3}, line())
    with pytest.raises(ConfigError, match=r"topology\.workers"):
        local_cluster.submit_topology("wrong", {"topology.workers": "two"}, line())
    with pytest.raises(InvalidTopologyError, match=r'"bolt".*"word".*"n"'):
        local_cluster.submit_topology("wrong", {}, line(grouping="word"))
    assert local_cluster.list_topologies() == []
    assert threading.enumerate() == before


def test_failed_topologies_leave_no_processes_behind(local_cluster: LocalCluster, spark_session: SparkSession):
    """Spark keeps some workers for its next query; their number must not grow from topology to topology."""

    def fail_once() -> int:
        local_cluster.submit_topology("broken", {"topology.fail.fast": True}, line(bolt=RaisingBolt("execute")))
        with pytest.raises(TopologyFailedError):
            local_cluster.await_completion("broken", 60)
        return sum(1 for _ in descendants())

    fail_once()
    counts = [fail_once() for _ in range(3)]
    assert max(counts) <= min(counts) + 2, counts


def test_a_query_that_spark_ends_ends_the_topology(local_cluster: LocalCluster, spark_session: SparkSession):
    """Somebody else may stop the query, in a notebook for example."""
    query = local_cluster.submit_topology("stopped", {}, line(Numbers(10**9)))
    (other,) = spark_session.streams.active
    assert other.id == query.id
    other.stop()
    assert query.awaitTermination(30)
    assert query.status_info().status == "KILLED"
    assert compile_topology(line()).graph.stages
