"""What a Nimbus warns of: from the last ten minutes of a heartbeat, and from who has the code."""

from __future__ import annotations

import dataclasses

import msgspec
from cluster_records import assignment, beat, manifest, storm, supervisor

from storm_on_spark.api.info import (
    ComponentInfo,
    ComponentWindow,
    GrowthInfo,
    LoadInfo,
    StreamCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.cluster.driver.reports import _apart
from storm_on_spark.cluster.records import NimbusSummary
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.rest.picture.warned import topology_warnings
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code


def nimbus(port: int) -> NimbusSummary:
    return NimbusSummary(host="n", port=port, started_at=0.0, version="1")


def picture(info: TopologyInfo, *holders: str) -> Picture:
    # As the driver sends it, and as it arrives.
    document = msgspec.json.decode(msgspec.json.encode({**info.to_dict(), **_apart(info)}))
    snapshot = ClusterSnapshot(
        storms={"t": storm()},
        assignments={"t": assignment()},
        supervisors={"a": supervisor(heartbeat_at=100.0)},
        workerbeats={"t": beat(time=100.0, info=document)},
        nimbuses={"n:1": nimbus(1), "n:2": nimbus(2)},
        code={"t": Code(manifest(), frozenset(holders))},
    )
    return Picture(snapshot, 101.0, "me", "1")


def running(busy_secs: float, failed_before: int = 0) -> TopologyInfo:
    parts = {"s": ComponentInfo("s", "spout", 1, failed=failed_before), "b": ComponentInfo("b", "bolt", 1)}
    counted = {"b": ComponentWindow(busy_secs=busy_secs), "s": ComponentWindow()}
    failed = (StreamCounts("default", failed=failed_before),)
    whole = {"b": ComponentWindow(), "s": ComponentWindow(failed=failed_before, streams=failed)}
    windows = {"600": WindowInfo("600", 600.0, counted), ":all-time": WindowInfo(":all-time", 9000.0, whole)}
    return TopologyInfo("t", "ACTIVE", 9000.0, failed=failed_before, components=parts, windows=windows)


def test_a_busy_bolt_and_missing_code_are_told() -> None:
    base = storm()
    found = topology_warnings(picture(running(580.0), "n:1"), base)
    assert [(each.rule, each.component) for each in found] == [("capacity", "b"), ("code", "")]


def test_a_topology_at_ease_has_no_warnings_and_old_failures_are_none() -> None:
    assert topology_warnings(picture(running(60.0, failed_before=50), "n:1", "n:2"), storm()) == []


def test_a_growing_backlog_and_growing_state_are_told_as_the_driver_reports_them() -> None:
    growth = GrowthInfo(540.0, {7: 2500}, {7: 500}, 200 << 20, 100 << 20)
    info = dataclasses.replace(running(60.0), load=LoadInfo(growth=growth))
    found = topology_warnings(picture(info, "n:1", "n:2"), storm())
    assert [(each.rule, each.text) for each in found] == [
        ("backlog", "2,500 tuples wait in the logs of spouts, 2,000 more than 540 s before"),
        ("checkpoint", "its state takes 200 MB, 100 MB more than 540 s before"),
    ]
    steady = LoadInfo(growth=GrowthInfo(540.0, {7: 2500}, {7: 2400}, 200 << 20, 190 << 20))
    assert topology_warnings(picture(dataclasses.replace(info, load=steady), "n:1", "n:2"), storm()) == []


def test_a_heartbeat_that_is_old_is_told() -> None:
    found = picture(running(60.0), "n:1", "n:2")
    late = Picture(found.snapshot, 130.0, "me", "1")
    assert [each.rule for each in topology_warnings(late, storm())] == ["heartbeats"]
