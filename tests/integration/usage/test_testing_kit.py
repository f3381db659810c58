"""The test kit on real Spark: what it captures, and that its faults happen."""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS
from topologies.kit import FailTwice, Switch, word_count

from storm_on_spark import Config, InvalidTopologyError, TopologyBuilder
from storm_on_spark.spark.state import read_bolt_state
from storm_on_spark.testing import (
    CRASH,
    EOF,
    GATE,
    CaptureBolt,
    ListSpout,
    On,
    TrackedTopology,
    crashes,
    kill_python_worker,
    kill_spout_host,
    python_workers,
    run_topology,
    running_topology,
    spout_hosts,
    tracked_wait,
)

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def finals(captured: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for word, count in captured.values("count"):
        found[word] = max(count, found.get(word, 0))
    return found


@pytest.mark.representative
def test_a_run_captures_tuples_acks_and_counters_of_every_component(spark_session: Any) -> None:
    lines = ["to be", "or not", "to be"]
    captured = run_topology(word_count(), {"lines": lines}, spark=spark_session)
    assert captured.values("lines") == [(line,) for line in lines]
    assert Counter(captured.values("split")) == Counter((word,) for word in " ".join(lines).split())
    assert finals(captured) == Counter(" ".join(lines).split())
    assert {tup.task for tup in captured.tuples if tup.component == "count"} <= {1, 2}
    assert sorted(captured.acked()) == sorted(captured.acked("lines")) == [0, 1, 2]
    assert captured.failed() == []
    assert captured.errors == []
    assert sorted(captured.info.components) == ["count", "lines", "split"]
    assert (captured.info.status, captured.info.emitted, captured.info.acked) == ("COMPLETED", 3, 3)


def test_inputs_must_name_a_spout(spark_session: Any) -> None:
    with pytest.raises(InvalidTopologyError, match='inputs are for spouts, but "count" is a bolt'):
        run_topology(word_count(), {"count": []}, spark=spark_session)


def test_named_streams_and_several_tasks_are_replaced_too(spark_session: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", ListSpout([], "line", streams={"side": ["a", "b"]}), 2)
    capture = CaptureBolt()
    builder.set_bolt("seen", capture, 2).shuffle_grouping("lines").shuffle_grouping("lines", stream="side")
    items = ["one", On("side", [1, 2]), "two", On("side", [3, 4])]
    captured = run_topology(builder.create_topology(), {"lines": items}, spark=spark_session)
    assert sorted(captured.values("lines")) == [("one",), ("two",)]
    assert sorted(captured.values("lines", "side")) == [(1, 2), (3, 4)]
    assert len(captured.acked()) == 4
    assert Counter(tup.values for tup in capture.captured()) == Counter(tup.values for tup in captured.tuples)


def test_an_ended_topology_is_gone_with_its_last_reference(spark_session: Any) -> None:
    def run() -> tuple[weakref.ref[CaptureBolt], Path]:
        builder = TopologyBuilder()
        builder.set_spout("lines", ListSpout(["a"], "line"))
        seen = CaptureBolt()
        builder.set_bolt("seen", seen).shuffle_grouping("lines")
        run_topology(builder.create_topology(), spark=spark_session)
        return weakref.ref(seen), seen.directory

    gc.disable()
    try:
        seen, directory = run()
        deadline = time.monotonic() + PATIENCE_SECS
        while seen() is not None and time.monotonic() < deadline:
            time.sleep(0.05)  # the thread that watched it ends
        assert seen() is None
        assert not directory.exists()
    finally:
        gc.enable()


def test_direct_emits_are_captured(spark_session: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout(range(6), "number"))
    builder.set_bolt("switch", Switch()).shuffle_grouping("numbers")
    seen = CaptureBolt()
    builder.set_bolt("worker", seen, 2).direct_grouping("switch", "jobs")
    captured = run_topology(builder.create_topology(), spark=spark_session)
    assert sorted(captured.values("switch", "jobs")) == [(number,) for number in range(6)]
    assert sorted(tup.values for tup in seen.captured()) == [(number,) for number in range(6)]


def test_failed_items_are_replayed_until_they_are_through(spark_session: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a", "b", "c"], "word"))
    builder.set_bolt("fail", FailTwice()).fields_grouping("words", "word")
    captured = run_topology(builder.create_topology(), spark=spark_session)
    assert Counter(captured.failed()) == {0: 2, 1: 2, 2: 2}
    assert sorted(captured.acked()) == [0, 1, 2]
    assert Counter(captured.values("words")) == {("a",): 3, ("b",): 3, ("c",): 3}


def test_a_topology_goes_on_behind_an_eof(spark_session: Any, tmp_path: Path) -> None:
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path)}
    topology = word_count(["a", "a", EOF(), "a"])
    first = run_topology(topology, conf=conf, spark=spark_session)
    assert finals(first) == {"a": 2}
    second = run_topology(topology, conf=conf, spark=spark_session)
    assert (second.values("lines"), finals(second)) == ([("a",)], {"a": 3})


def test_a_crash_of_the_spout_costs_nothing_but_a_restart_of_its_process(spark_session: Any) -> None:
    lines = [f"a {number % 3}" for number in range(40)]
    items = [*lines[:15], CRASH(), *lines[15:], CRASH()]
    captured = run_topology(word_count(), {"lines": items}, spark=spark_session)
    errors = [error.message for error in captured.errors]
    assert sum("ended unexpectedly (killed by SIGKILL); it is started again" in error for error in errors) == 2
    assert finals(captured) == Counter(" ".join(lines).split())
    assert set(captured.acked()) == set(range(40))
    assert captured.failed() == []


def test_a_crash_of_a_worker_costs_nothing_at_all(spark_session: Any, tmp_path: Path) -> None:
    marker = tmp_path / "crashed"
    conf = {"count.marker": str(marker)}
    lines = ["a b", "a boom", "c a boom"]
    captured = run_topology(word_count(), {"lines": lines}, conf, spark=spark_session)
    assert crashes(marker) == 1
    assert finals(captured) == Counter(" ".join(lines).split())
    assert sorted(captured.acked()) == [0, 1, 2]


def test_workers_and_spout_hosts_are_found_and_killed(spark_session: Any, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(20)]
    items = [*lines[:10], GATE("worker"), *lines[10:], GATE("host")]
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path)}
    assert spout_hosts() == []
    with running_topology(word_count(), {"lines": items}, conf, spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.acks) == 10)
        assert len(spout_hosts()) == 1
        for pid in python_workers():
            assert pid != os.getpid()
        killed = kill_python_worker()
        assert killed not in python_workers()
        running.open_gate("worker")
        captured = running.wait_until(lambda captured: len(captured.acks) == 20)
        assert finals(captured) == Counter(" ".join(lines).split())
        killed = kill_spout_host()
        running.open_gate("host")
        captured = running.await_completion()
        assert killed not in spout_hosts()
        assert any("ended unexpectedly (killed by SIGKILL)" in error.message for error in captured.errors)


def test_waiting_has_an_end_that_says_what_was_there(spark_session: Any) -> None:
    with running_topology(word_count(), {"lines": ["a", GATE("never")]}, spark=spark_session) as running:
        running.wait_until(lambda captured: len(captured.acks) == 1)
        with pytest.raises(TimeoutError, match=r"not within 0.2 s: ACTIVE, emitted 1, acked 1, failed 0, pending 0"):
            running.wait_until(lambda captured: False, timeout=0.2)
        with pytest.raises(TimeoutError, match=r"did not complete within 0.2 s"):
            running.await_completion(timeout=0.2)
        assert not running.query.isActive


def test_a_tracked_topology_is_waited_for_until_all_tuples_are_processed(spark_session: Any, tmp_path: Path) -> None:
    def counted() -> int:
        states = read_bolt_state(spark_session, tmp_path, "count").values()
        return sum(sum(state["counts"].values()) for state in states)

    lines = ["to be", "or not", GATE("half"), "to be", GATE("end")]
    conf = {Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path), Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 1}
    with running_topology(word_count(), {"lines": lines}, conf, spark=spark_session) as running:
        tracked = TrackedTopology(running.query)
        tracked_wait(tracked, 2)
        # Not only executed: what the tuples left behind is committed, and their spout has heard of it.
        assert counted() == 4
        assert sorted(running.captured().acked()) == [0, 1]
        tracked_wait(tracked, 0)
        with pytest.raises(TimeoutError, match=r"within 0\.2 s: 0 of 1 emitted since the last wait, pending 0, ACTIVE"):
            tracked_wait(tracked, 1, timeout=0.2)
        running.open_gate("half")
        tracked_wait(tracked, 1)
        assert counted() == 6
        running.open_gate("end")
        running.await_completion()
        tracked_wait(tracked, 0)
        with pytest.raises(TimeoutError, match="before the topology ended: 0 of 1 emitted"):
            tracked_wait(tracked, 1)
        with pytest.raises(AssertionError, match="emitted more tuples than the test waits for: 3 of 2 emitted"):
            tracked_wait(TrackedTopology(running.query), 2)
        with pytest.raises(ValueError, match="not -1"):
            tracked_wait(tracked, -1)
