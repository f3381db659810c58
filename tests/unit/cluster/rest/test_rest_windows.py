"""Windows, executors and system components in Storm UI's answers."""

from __future__ import annotations

import dataclasses
import json

import cluster_records as made
import msgspec
import pytest

from storm_on_spark.api.info import WINDOWS, ComponentInfo, GrowthInfo, LoadInfo, TopologyInfo, WindowInfo
from storm_on_spark.cluster.driver.files import DriverSpec
from storm_on_spark.cluster.driver.reports import Reports
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.cluster.records import WorkerBeat, decode, encode
from storm_on_spark.cluster.rest.pages import graph, topology_page
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Amounts
from storm_on_spark.metrics.latency import bin_of
from storm_on_spark.metrics.packed import unpack_windows
from storm_on_spark.metrics.views import window_info

ID = "words-1-1000"
PLAN = PlanSummary.of(
    b'{"components": {"lines": {"kind": "spout", "tasks": [1], "executors": 1},'
    b' "split": {"kind": "bolt", "tasks": [2, 3, 4], "executors": 2}},'
    b' "edges": [{"source": "lines", "stream": "default", "target": "split", "grouping": "shuffle"}],'
    b' "acker_tasks": [5], "stages": []}',
    "plan.json",
)


def sums(times: int) -> Amounts:
    """What was counted: `times` lines, of which each task of the bolt got as many as its number says."""
    found: Amounts = {
        ("lines", 1, names.EMITTED, "default", ""): 9 * times,
        ("lines", 1, names.ACKED, "", "default"): 8 * times,
        ("lines", 1, names.COMPLETE_NS, "", "default"): 8 * times * 100_000_000,
        ("lines", 1, names.COMPLETE_BIN, bin_of(100.0), ""): 8 * times,
        ("__acker", 5, names.EXECUTED, "__system", "__ack_ack"): 9 * times,
    }
    for task in (2, 3, 4):
        found |= {
            ("split", task, names.EXECUTED, "lines", "default"): task * times,
            ("split", task, names.EXECUTED, "__system", "__tick"): 1,
            ("split", task, names.EXECUTE_NS, "lines", "default"): task * times * 2_000_000,
            ("split", task, names.EXECUTE_BIN, bin_of(2.0), ""): task * times,
            ("split", task, names.BUSY_NS, "", ""): 60_000_000_000,
            ("split", task, names.EMITTED, "words", ""): 5 * times,
            ("split", task, names.EMITTED, "default", ""): 1 * times,
        }
    return found


def windows() -> dict[str, WindowInfo]:
    return {name: window_info(name, secs or 90_000.0, sums(n)) for n, (name, secs) in enumerate(WINDOWS.items(), 1)}


def sent(info: TopologyInfo) -> WorkerBeat:
    """The heartbeat of a driver, as a Nimbus reads it."""
    assignment = made.assignment(ID, supervisor_id="s1", host="localhost", epoch=5, assigned_at=1000.0)
    spec = msgspec.convert({**_SPEC, "assignment": msgspec.to_builtins(assignment)}, DriverSpec)
    return decode(WorkerBeat, encode(Reports(spec, lambda: 1100.0).beat(info)), "here")


_SPEC = {
    "assignment_version": 0,
    "name": "words",
    "conf": {},
    "cluster": {},
    "target": "words",
    "paths": (),
    "packages": (),
    "executors": {},
    "checkpoint": "/checkpoint",
    "log": "/log",
}


def picture(info: TopologyInfo) -> Picture:
    manifest = made.manifest(ID, uploader="localhost:1", plan=PLAN)
    snapshot = ClusterSnapshot(
        storms={ID: made.storm(ID, name="words", submitted_at=1000.0)},
        assignments={ID: made.assignment(ID, supervisor_id="s1", host="localhost", epoch=5, assigned_at=1000.0)},
        supervisors={"s1": made.supervisor("s1", host="localhost", started_at=1.0, version="1", heartbeat_at=1099.0)},
        code={ID: Code(manifest, frozenset())},
        workerbeats={ID: sent(info)},
    )
    return Picture(snapshot, 1100.0, "root", "0.1")


INFO = TopologyInfo(
    "words",
    "ACTIVE",
    100.0,
    components={"lines": ComponentInfo("lines", "spout", 1), "split": ComponentInfo("split", "bolt", 3)},
    windows=windows(),
    load=LoadInfo(
        pending={1: 7},
        backlog={1: 3},
        batch_ms={"executes": 12.0},
        state_rows=5,
        growth=GrowthInfo(540.0, {1: 3, 2: 2000}, {1: 2}, 7 << 20, 6 << 20),
    ),
)


def topology(window: str = ":all-time", *, sys: bool = False) -> dict:
    now = picture(INFO)
    page = topology_page.topology_page(now, now.snapshot.storms[ID], {}, window, sys=sys)
    return json.loads(msgspec.json.encode(page))


def component(name: str, window: str = ":all-time", *, sys: bool = False) -> dict:
    now = picture(INFO)
    page = topology_page.component_page(now, now.snapshot.storms[ID], name, {}, window, sys=sys)
    return json.loads(msgspec.json.encode(page))


def test_a_heartbeat_brings_windows_and_load_to_a_nimbus() -> None:
    found = picture(INFO).info(ID)
    assert found is not None
    assert found.windows == INFO.windows
    assert found.load == INFO.load


@pytest.mark.parametrize(("times", "window"), list(enumerate(WINDOWS, 1)))
def test_lines_are_of_the_window_that_was_asked_for(times: int, window: str) -> None:
    page = topology(window)
    assert page["window"] == window
    (spout,), (bolt,) = page["spouts"], page["bolts"]
    assert (spout["emitted"], spout["acked"], spout["completeLatency"]) == (9 * times, 8 * times, "100.000")
    assert (bolt["executed"], bolt["executeLatency"], bolt["emitted"]) == (9 * times, "2.000", 18 * times)


def test_the_statistics_have_all_windows_in_storms_order() -> None:
    rows = topology("600")["topologyStats"]
    assert [row["window"] for row in rows] == ["600", "10800", "86400", ":all-time"]
    assert [row["windowPretty"] for row in rows] == ["10m 0s", "3h 0m 0s", "1d 0h 0m 0s", "All time"]
    assert [row["acked"] for row in rows] == [8, 16, 24, 32]
    assert [row["executed"] for row in component("split")["boltStats"]] == [9, 18, 27, 36]


def test_a_capacity_is_that_of_ten_minutes_whatever_the_window() -> None:
    assert topology(":all-time")["bolts"][0]["capacity"] == topology("600")["bolts"][0]["capacity"] == "0.150"


def test_executors_have_their_own_tasks() -> None:
    rows = component("split", "600")["executorStats"]
    assert [(row["id"], row["executed"], row["capacity"]) for row in rows] == [
        ("[2-3]", 5, "0.200"),
        ("[4-4]", 4, "0.100"),
    ]


def test_streams_are_counted_apart() -> None:
    page = component("split", "600")
    assert [(row["stream"], row["emitted"]) for row in page["outputStats"]] == [("default", 3), ("words", 15)]
    assert [(row["component"], row["executed"]) for row in page["inputStats"]] == [("lines", 9)]
    assert page["latencies"]["600"]["execute"] == {"p50": pytest.approx(2.0, rel=0.02)} | {
        name: pytest.approx(2.0, rel=0.02) for name in ("p95", "p99")
    }


def test_system_components_and_streams_are_there_for_those_who_ask() -> None:
    assert [bolt["boltId"] for bolt in topology(sys=False)["bolts"]] == ["split"]
    page = topology("600", sys=True)
    assert [(bolt["boltId"], bolt["executed"]) for bolt in page["bolts"]] == [("split", 12), ("__acker", 9)]
    assert component("__acker")["boltStats"][0]["executed"] == 9
    assert len(component("split", sys=True)["inputStats"]) == 2


def test_metrics_are_by_stream_under_storms_names() -> None:
    now = picture(INFO)
    page = graph.metrics_page(now, now.snapshot.storms[ID], "600", sys=False)
    assert (page["window"], page["window-hint"]) == ("600", "10m 0s")
    (spout,), (bolt,) = page["spouts"], page["bolts"]
    assert spout == {
        "id": "lines",
        "emitted": [{"stream_id": "default", "value": 9}],
        "transferred": [{"stream_id": "default", "value": 0}],
        "acked": [{"stream_id": "default", "value": 8}],
        "failed": [{"stream_id": "default", "value": 0}],
        "complete_ms_avg": [{"stream_id": "default", "value": "100.000"}],
    }
    assert bolt["executed"] == [{"component_id": "lines", "stream_id": "default", "value": 9}]
    assert bolt["executed_ms_avg"] == [{"component_id": "lines", "stream_id": "default", "value": "2.000"}]
    everything = graph.metrics_page(now, now.snapshot.storms[ID], "600", sys=True)
    assert [line["id"] for line in everything["bolts"]] == ["split", "__acker"]


def test_the_graph_has_what_storms_page_draws() -> None:
    now = picture(INFO)
    found = graph.visualization(now, now.snapshot.storms[ID], "600", sys=False)
    split = found["split"]
    assert (split[":type"], split[":capacity"], split[":transferred"]) == ("bolt", 0.15, {"default": 0, "words": 0})
    assert split[":inputs"] == [
        {":component": "lines", ":stream": "default", ":sani-stream": "default", ":grouping": "shuffle"}
    ]
    assert [set(line[":transferred"]) for line in split[":stats"]] == [set(WINDOWS)] * 2
    table = graph.visualization_init(now, now.snapshot.storms[ID], "600", sys=False)["visualizationTable"]
    assert table == [{":row": [{":stream": "default", ":sani-stream": "default", ":checked": True}]}]


def test_200_topologies_with_50_components_take_bounded_memory() -> None:
    amounts: Amounts = {}
    for number in range(50):
        for task in range(4):
            place = f"component-{number}", 4 * number + task
            for name in (names.EXECUTED, names.ACKED, names.EXECUTE_NS, names.PROCESS_NS):
                amounts[(*place, name, "lines", "default")] = 10**9 + number
            for at in range(40):
                amounts[(*place, names.EXECUTE_BIN, at, "")] = 10**5 + at
    info = dataclasses.replace(INFO, windows={name: window_info(name, 600.0, amounts) for name in WINDOWS})
    packed = sent(info).info["windows"]
    assert len(packed) < 100_000
    assert len(unpack_windows(packed)["600"].components["component-7"].tasks) == 4
