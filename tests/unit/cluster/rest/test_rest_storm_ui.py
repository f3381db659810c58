from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import cluster_records as made
import msgspec
import pytest

from storm_on_spark.api.info import (
    ALL_TIME,
    ComponentInfo,
    ComponentWindow,
    ErrorInfo,
    LatencyInfo,
    MetricInfo,
    RepetitionInfo,
    StreamCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.cluster.driver.files import DriverSpec
from storm_on_spark.cluster.driver.reports import Reports
from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.cluster.records import (
    CodeManifest,
    ErrorRecord,
    LeaderInfo,
    NimbusSummary,
    StormBase,
    Transition,
    WorkerBeat,
    decode,
    encode,
)
from storm_on_spark.cluster.rest.pages import summaries, topology_page
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.cluster.state.snapshot import ClusterSnapshot, Code, Unreadable
from storm_on_spark.metrics.packed import pack_windows

GOLDEN = (Path(__file__).parents[3] / "plan" / "golden" / "word_count.json").read_bytes()
"""What `storm-spark explain --json` prints of a topology."""
PLAN = PlanSummary.of(GOLDEN, "word_count")
ID = "words-1-1000"
_EXECUTE, _COMPLETE = LatencyInfo(0.5, 0.5, 0.5, 0.5), LatencyInfo(80.5, 80.5, 120.0, 200.0)
_COUNTED = {
    "sentences": ComponentWindow(
        emitted=50,
        transferred=50,
        acked=40,
        failed=2,
        complete=_COMPLETE,
        streams=(StreamCounts("default", emitted=50, transferred=50, acked=40, failed=2, complete_ms=80.5),),
    ),
    "split": ComponentWindow(
        executed=50,
        emitted=300,
        transferred=600,
        acked=50,
        execute=LatencyInfo(2.0, 2.0, 2.0, 2.0),
        busy_secs=0.1,
        streams=(StreamCounts("default", emitted=300, transferred=600),),
    ),
    "count": ComponentWindow(
        executed=300,
        acked=299,
        failed=1,
        execute=_EXECUTE,
        process=_EXECUTE,
        busy_secs=0.15,
        streams=(StreamCounts("default", "split", executed=300, acked=299, failed=1, execute_ms=0.5, process_ms=0.5),),
    ),
}
INFO = TopologyInfo(
    "words",
    "ACTIVE",
    100.0,
    emitted=50,
    transferred=50,
    acked=40,
    failed=2,
    pending=8,
    complete_latency_ms={"p50": 80.5, "p95": 120.0, "p99": 200.0},
    components={
        "sentences": ComponentInfo("sentences", "spout", 1, emitted=50, transferred=50, acked=40, failed=2),
        "split": ComponentInfo(
            "split", "basic_bolt", 2, executed=50, emitted=300, transferred=600, acked=50, execute_latency_ms=2.0
        ),
        "count": ComponentInfo(
            "count",
            "basic_bolt",
            2,
            executed=300,
            acked=299,
            failed=1,
            execute_latency_ms=0.5,
            errors=(ErrorInfo("count", 1, "KeyError: 'x'", 1080.0),),
        ),
    },
    windows={ALL_TIME: WindowInfo(ALL_TIME, 100.0, _COUNTED, _COMPLETE)},
)
TOLD = {**INFO.to_dict(), "windows": pack_windows(INFO.windows)}
"""What a driver says of it in a heartbeat."""

AT = {"supervisor_id": "s1", "host": "localhost"}
SEEN = {"host": "localhost", "started_at": 1095.0, "version": "0.1", "heartbeat_at": 1099.0}


def base(**fields) -> StormBase:
    conf = {"topology.debug": True, "my.password": "hush"}
    return made.storm(ID, **{"name": "words", "submitted_at": 1000.0, "conf": conf, **fields})


def beat(info: dict, **fields) -> WorkerBeat:
    return made.beat(ID, 1100.0, **{**AT, "pid": 7, "started_at": 1010.0, "info": info, **fields})


def nimbus(port: int) -> NimbusSummary:
    return NimbusSummary(host="localhost", port=port, started_at=735.0, version="0.1")


def snapshot(plan: PlanSummary | None = PLAN, **fields) -> ClusterSnapshot:
    manifest = made.manifest(ID, uploader="localhost:1", plan=plan)
    assert decode(CodeManifest, encode(manifest), "here") == manifest
    known = {
        "leader": LeaderInfo(address="localhost:1", epoch=5, since=735.0),
        "nimbuses": {f"localhost:{port}": nimbus(port) for port in (2, 1)},
        "supervisors": {name: made.supervisor(name, **SEEN) for name in ("s2", "s1")},
        "storms": {ID: base()},
        "assignments": {ID: made.assignment(ID, **AT, epoch=5, assigned_at=1000.0)},
        "code": {ID: Code(manifest, frozenset({"localhost:1"}))},
        "workerbeats": {ID: beat(TOLD)},
    }
    return ClusterSnapshot(**{**known, **fields})


def picture(plan: PlanSummary | None = PLAN, stale_since: float | None = None, **fields) -> Picture:
    return Picture(snapshot(plan, **fields), 1100.0, "root", "0.1", stale_since)


def as_json(view: msgspec.Struct) -> dict:
    return json.loads(msgspec.json.encode(view))


# What streamparse 5 reads of Storm UI (streamparse/cli/{stats,worker_uptime,slot_usage}.py), field by field.
READ_BY_STREAMPARSE = {
    "cluster": ("stormVersion nimbusUptime supervisors slotsTotal slotsUsed slotsFree executorsTotal tasksTotal"),
    "topologies": "name id status uptime workersTotal executorsTotal tasksTotal",
    "supervisors": "id host uptime slotsTotal slotsUsed",
    "topologyStats": "windowPretty emitted transferred completeLatency acked failed",
    "spouts": "spoutId emitted transferred completeLatency acked failed",
    "bolts": (
        "boltId executors tasks emitted transferred capacity executeLatency executed processLatency acked failed "
        "lastError"
    ),
    "component": "id name executors tasks componentType",
    "boltStats": "windowPretty emitted transferred executeLatency executed processLatency acked failed",
    "inputStats": "component stream executeLatency processLatency executed acked failed",
    "boltOutputStats": "stream emitted transferred",
    "spoutSummary": "windowPretty emitted transferred completeLatency acked failed",
    "spoutOutputStats": "stream emitted transferred completeLatency acked failed",
    "executorStats": "id uptime host port emitted transferred completeLatency acked failed workerLogLink",
}


def has_all(row: dict, what: str) -> bool:
    return all(row.get(column) is not None for column in READ_BY_STREAMPARSE[what].split())


def test_streamparse_finds_every_field_of_the_summaries() -> None:
    now = picture()
    assert has_all(as_json(summaries.cluster_summary(now)), "cluster")
    assert all(has_all(row, "topologies") for row in as_json(summaries.topology_summary(now))["topologies"])
    assert all(has_all(row, "supervisors") for row in as_json(summaries.supervisor_summary(now))["supervisors"])


def test_streamparse_finds_every_field_of_a_topology() -> None:
    page = as_json(topology_page.topology_page(picture(), base(), {}))
    assert has_all(page, "topologies")
    assert "error" not in page, "it takes that for an error of the request"
    for part in ("topologyStats", "spouts", "bolts"):
        assert page[part]
        assert all(has_all(row, part) for row in page[part]), part


def test_streamparse_finds_every_field_of_components() -> None:
    bolt = as_json(topology_page.component_page(picture(), base(), "count", {}))
    assert has_all(bolt, "component")
    assert has_all(bolt["boltStats"][-1], "boltStats")
    assert all(has_all(row, "inputStats") for row in bolt["inputStats"])
    split = as_json(topology_page.component_page(picture(), base(), "split", {}))
    assert all(has_all(row, "boltOutputStats") for row in split["outputStats"])
    spout = as_json(topology_page.component_page(picture(), base(), "sentences", {}))
    assert (spout["componentType"], bolt["componentType"]) == ("spout", "bolt")
    assert has_all(spout["spoutSummary"][-1], "spoutSummary")
    assert all(has_all(row, "spoutOutputStats") for row in spout["outputStats"])
    assert all(has_all(row, "executorStats") for row in spout["executorStats"])
    sorted({(row["host"], row["id"], row["uptime"], row["workerLogLink"]) for row in bolt["executorStats"]})


def test_cluster_summary() -> None:
    page = as_json(summaries.cluster_summary(picture()))
    counts = ("topologies", "supervisors", "slotsTotal", "slotsUsed", "slotsFree", "executorsTotal", "tasksTotal")
    assert [page[name] for name in counts] == [1, 2, 4, 1, 3, 6, 6]
    assert page["nimbusUptime"] == "6m 5s"
    assert page["nimbuses"] == [
        {"host": "localhost", "port": 1, "uptime_secs": 365, "is_leader": True, "version": "0.1"},
        {"host": "localhost", "port": 2, "uptime_secs": 365, "is_leader": False, "version": "0.1"},
    ]
    assert (page["stale"], page["staleSince"]) == (False, None)
    stale = as_json(summaries.cluster_summary(picture(stale_since=1090.0)))
    assert (stale["stale"], stale["staleSince"]) == (True, 1090.0)


def test_nimbus_summary_has_the_leader_first_and_silent_seeds_last() -> None:
    page = as_json(summaries.nimbus_summary(picture(), ["localhost", "localhost:2", "far", "far:9"], 6627))
    assert [(n["host"], n["port"], n["status"]) for n in page["nimbuses"]] == [
        ("localhost", 1, "Leader"),
        ("localhost", 2, "Not a Leader"),
        ("far", 6627, "Offline"),
        ("far", 9, "Offline"),
    ]
    assert page["nimbuses"][0]["nimbusUpTimeSeconds"] == "365"
    assert [n["missingCode"] for n in page["nimbuses"]] == [[], [ID], [], []]


def test_supervisors_with_their_workers() -> None:
    page = as_json(summaries.supervisor_page(picture(), "s1", "nowhere"))
    assert [(s["id"], s["slotsUsed"], s["slotsFree"]) for s in page["supervisors"]] == [("s1", 1, 1)]
    (worker,) = page["workers"]
    assert (worker["topologyName"], worker["port"], worker["uptimeSeconds"]) == ("words", 6700, 90)
    assert worker["componentNumTasks"] == {"sentences": 1, "split": 2, "count": 2}
    both = as_json(summaries.supervisor_page(picture(), None, "localhost"))
    assert [s["id"] for s in both["supervisors"]] == ["s1", "s2"]


def test_topology_summary() -> None:
    (row,) = as_json(summaries.topology_summary(picture()))["topologies"]
    assert row["encodedId"] == ID
    assert (row["uptime"], row["uptimeSeconds"], row["replicationCount"]) == ("1m 40s", 100, 1)
    assert (row["workersTotal"], row["schedulerInfo"], row["driverStatus"]) == (1, None, "ACTIVE")
    homeless = as_json(summaries.topology_summary(picture(assignments={}, supervisors={})))["topologies"][0]
    assert (homeless["workersTotal"], homeless["schedulerInfo"]) == (0, "no supervisor with a slot is alive")


def test_a_topologys_page_has_the_operators_that_its_driver_runs_as_explain_says_them() -> None:
    said = {name: json.loads(GOLDEN)[name] for name in ("operators", "stages", "partitions")}
    sent = decode(WorkerBeat, encode(beat(TOLD, plan=said)), "here")
    page = as_json(topology_page.topology_page(picture(workerbeats={ID: sent}), base(), {}))
    assert page["plan"] == said


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(beat({}), id="a driver that has not started them"),
        pytest.param(beat({}, plan={"operators": [{"stages": "all"}]}), id="damage"),
        pytest.param(beat({}, launch=0, plan={"operators": [], "stages": [], "partitions": 1}), id="the launch before"),
    ],
)
def test_without_a_driver_that_says_what_it_runs_there_are_no_operators(sent: WorkerBeat) -> None:
    page = as_json(topology_page.topology_page(picture(workerbeats={ID: sent}), base(), {}))
    assert page["plan"] is None


def test_topology_page() -> None:
    last = ErrorRecord(component="count", task=1, message="KeyError: 'x'", time=1080.4, host="h", port=6700)
    page = as_json(topology_page.topology_page(picture(), base(), {"count": [last]}))
    assert (page["msgTimeout"], page["debug"], page["pending"]) == (30, True, 8)
    assert page["configuration"] == {"topology.debug": True, "my.password": "*****"}
    assert page["topologyStats"] == [
        {
            "emitted": 350,
            "transferred": 650,
            "completeLatency": "80.500",
            "acked": 40,
            "failed": 2,
            "window": ":all-time",
            "windowPretty": "All time",
        }
    ]
    count, split = page["bolts"]
    assert (count["boltId"], count["transferred"], split["transferred"]) == ("count", 0, 600)
    spouts = page["spoutStats"]
    assert (spouts["emitted"], spouts["transferred"], spouts["acked"], spouts["failed"]) == (50, 50, 40, 2)
    assert (count["executeLatency"], split["executeLatency"]) == ("0.500", "2.000")
    assert (count["lastError"], count["errorTime"], count["errorLapsedSecs"]) == ("KeyError: 'x'", 1080, 19)
    assert (split["lastError"], split["errorTime"]) == ("", None)


def test_what_is_executed_again_after_a_live_process_was_lost_reaches_the_page_of_a_topology() -> None:
    assert as_json(topology_page.topology_page(picture(), base(), {}))["repetition"] is None
    repeats = dataclasses.replace(INFO, mode="micro-batches", repetition=RepetitionInfo(1500, 20000))
    sent = decode(WorkerBeat, encode(beat({**TOLD, **repeats.to_dict()})), "here")
    page = as_json(topology_page.topology_page(picture(workerbeats={ID: sent}), base(), {}))
    assert (page["mode"], page["repetition"]) == ("micro-batches", {"executed": 1500, "rounds": 20000})


def test_a_batch_spout_is_a_spout() -> None:
    columnar = msgspec.structs.replace(PLAN.components["sentences"], kind="batch_spout")
    plan = msgspec.structs.replace(PLAN, components={**PLAN.components, "sentences": columnar})
    counts = dataclasses.replace(INFO.components["sentences"], kind="batch_spout")
    info = dataclasses.replace(INFO, components={**INFO.components, "sentences": counts})
    now = picture(plan, workerbeats={ID: beat({**TOLD, **info.to_dict()})})
    page = as_json(topology_page.topology_page(now, base(), {}))
    assert [spout["spoutId"] for spout in page["spouts"]] == ["sentences"]
    assert [bolt["boltId"] for bolt in page["bolts"]] == ["count", "split"]
    component = as_json(topology_page.component_page(now, base(), "sentences", {}))
    assert (component["componentType"], component["spoutSummary"][0]["acked"]) == ("spout", 40)
    assert (component["outputStats"][0]["acked"], component["executorStats"][0]["completeLatency"]) == (40, "80.500")


def test_executors_of_a_rebalance_count() -> None:
    page = as_json(topology_page.topology_page(picture(), base(executors={"count": 1, "split": 9}), {}))
    assert [(b["boltId"], b["executors"], b["tasks"]) for b in page["bolts"]] == [("count", 1, 2), ("split", 2, 2)]


def test_errors_come_from_the_last_beat_where_zookeeper_is_away() -> None:
    found = topology_page.beat_errors(picture(), ID)
    page = as_json(topology_page.topology_errors(picture(), base(), found))
    assert page["errors"] == {
        "count": [
            {
                "error": "KeyError: 'x'",
                "errorTime": 1080,
                "errorHost": "localhost",
                "errorPort": 6700,
                "errorLapsedSecs": 20,
                "errorWorkerLogLink": "",
                "task": 1,
                "trace": "",
                "file": "",
                "line": None,
                "input": "",
                "count": 1,
                "firstTime": 1080,
                "beforeRestart": False,
            }
        ]
    }


def test_equal_errors_are_one_on_every_page_and_say_whether_the_driver_was_started_since() -> None:
    started = beat(TOLD).started_at
    record = ErrorRecord(
        component="count",
        task=1,
        message="no",
        time=started - 0.5,
        host="h",
        port=6700,
        input="('storm', 3)",
        count=10,
        first_time=started - 60,
    )
    after = msgspec.structs.replace(record, time=started + 1)
    for last, restarted in ((record, True), (after, False)):
        (error,) = as_json(topology_page.topology_errors(picture(), base(), {"count": [last]}))["errors"]["count"]
        found = error["count"], error["firstTime"], error["input"], error["beforeRestart"]
        assert found == (10, int(started - 60), "('storm', 3)", restarted)
        (line, _) = as_json(topology_page.topology_page(picture(), base(), {"count": [record, last]}))["bolts"]
        assert (line["errorCount"], line["errorFirstTime"], line["errorInput"]) == found[:3]
        assert (line["errorBeforeRestart"], line["errorTime"]) == (restarted, int(last.time))


def test_an_error_names_file_and_line_of_the_users_code() -> None:
    trace = 'Traceback (most recent call last):\n  File "/home/u/job.py", line 31, in execute\nKeyError: 1\n'
    record = ErrorRecord(component="count", task=1, message="no", time=1080.4, host="h", port=6700, trace=trace)
    page = as_json(topology_page.topology_errors(picture(), base(), {"count": [record]}))
    (error,) = page["errors"]["count"]
    assert (error["file"], error["line"], error["trace"]) == ("/home/u/job.py", 31, trace)


def test_without_a_plan_the_drivers_word_counts_and_without_that_nothing_is_known() -> None:
    page = as_json(topology_page.topology_page(picture(plan=None), base(), {}))
    assert (page["tasksTotal"], [b["boltId"] for b in page["bolts"]]) == (5, ["count", "split"])
    for beats in ({}, {ID: beat({"nonsense": 1})}, {ID: beat(TOLD, launch=0)}):
        page = as_json(topology_page.topology_page(picture(plan=None, workerbeats=beats), base(), {}))
        assert (page["tasksTotal"], page["spouts"], page["bolts"], page["driverStatus"]) == (0, [], [], None)
        page = as_json(topology_page.topology_page(picture(workerbeats=beats), base(), {}))
        assert [b["emitted"] for b in page["bolts"]] == [0, 0]


def test_a_component_that_is_none() -> None:
    assert topology_page.component_page(picture(), base(), "nothing", {}) is None


def test_a_finished_topology_needs_no_slot() -> None:
    info = {**TOLD, "status": "COMPLETED"}
    now = picture(workerbeats={ID: beat(info)}, assignments={}, supervisors={})
    assert now.waiting == {}
    again = picture(workerbeats={ID: beat(info)}, assignments={}, supervisors={}, storms={ID: base(launch=2)})
    assert list(again.waiting) == [ID], "a rebalance restarts it"


def test_a_topology_that_is_being_killed() -> None:
    killed = base(status="KILLED", transition=Transition(kind="kill", due_at=1200.0, previous="ACTIVE"))
    (row,) = as_json(summaries.topology_summary(picture(storms={ID: killed})))["topologies"]
    assert row["status"] == "KILLED"


def test_plans_that_are_none() -> None:
    for data in (b"{}", b"\xff", b"[]", b'{"components": {"a": {}}, "edges": [], "acker_tasks": []}'):
        with pytest.raises(RecordError, match=r"^plan.json: no plan of a topology: "):
            PlanSummary.of(data, "plan.json")


def spec(folder: Path) -> DriverSpec:
    return DriverSpec(
        name="words",
        assignment=snapshot(PLAN).assignments[ID],
        assignment_version=0,
        target="words",
        paths=(),
        packages=(),
        conf={},
        executors={},
        checkpoint=str(folder),
        log=str(folder / "log"),
        cluster={},
    )


def test_errors_of_the_acker_reach_status_and_errors(tmp_path: Path) -> None:
    lost = ErrorInfo("__acker", 7, "a micro-batch lost tuples between two stages", 1080.0, trace="")
    info = dataclasses.replace(INFO, system_errors=(lost,))
    assert lost in info.errors
    # What the driver writes to ZooKeeper: once.
    reports = Reports(spec(tmp_path))
    records = [record for record in reports.new_errors(info) if record.component == "__acker"]
    assert [(record.task, record.message) for record in records] == [(7, lost.message)]
    assert not list(reports.new_errors(info))
    more = dataclasses.replace(info, system_errors=(dataclasses.replace(lost, time=lost.time + 9, count=4),))
    (record,) = reports.new_errors(more)
    assert (record.count, record.time, record.first_time) == (3, lost.time + 9, lost.time + 9), "what is new of them"
    assert not list(reports.new_errors(more))
    # What its beat says while ZooKeeper's errors can't be read.
    last = picture(workerbeats={ID: msgspec.structs.replace(beat({}), info=reports.beat(info).info)})
    for errors in ({"__acker": records}, topology_page.beat_errors(last, ID)):
        page = as_json(topology_page.topology_page(last, base(), errors))
        assert [error["error"] for error in page["systemErrors"]["__acker"]] == [lost.message]
        listed = as_json(topology_page.topology_errors(last, base(), errors))
        assert listed["errors"]["__acker"][0]["task"] == 7


def test_registered_metrics_reach_both_pages(tmp_path: Path) -> None:
    tasks = {task: {"name": f"storm.topology.{ID}.localhost.count.{task}.-1-hits", "count": 2} for task in (2, 3)}
    hits = MetricInfo("hits", "counter", {"count": 4}, tasks)
    counted = dataclasses.replace(INFO.components["count"], metrics={"hits": hits})
    info = dataclasses.replace(INFO, components={**INFO.components, "count": counted})
    beaten = decode(WorkerBeat, encode(Reports(spec(tmp_path)).beat(info)), "here")
    told = picture(workerbeats={ID: msgspec.structs.replace(beat({}), info=beaten.info)})
    expected = {"hits": {"type": "counter", "count": 4, "tasks": {str(task): tasks[task] for task in tasks}}}
    assert as_json(topology_page.topology_page(told, base(), {}))["metrics"] == {"count": expected}
    page = topology_page.component_page(told, base(), "count", {})
    assert page is not None
    assert as_json(page)["metrics"] == expected


def test_a_beat_has_room_for_few_metrics_only(tmp_path: Path) -> None:
    many = {f"m{number}": MetricInfo(f"m{number}", "counter", {"count": 1}, {1: {}, 2: {}}) for number in range(900)}
    counted = dataclasses.replace(INFO.components["count"], metrics=many)
    said = Reports(spec(tmp_path)).beat(dataclasses.replace(INFO, components={"count": counted})).info
    kept = said["components"]["count"]["metrics"]
    assert list(kept) == [f"m{number}" for number in range(300)]
    assert [len(metric["tasks"]) for metric in kept.values()] == [2] * 150 + [0] * 150


def test_a_topology_that_cant_be_read_is_named_where_topologies_are_listed() -> None:
    reason = "this StormBase has format version 2; this release reads 1"
    unreadable = {"storms": {"later-9-9": Unreadable(reason, foreign=True)}}
    page = as_json(summaries.topology_summary(picture(unreadable=unreadable)))
    assert [row["id"] for row in page["topologies"]] == [ID]
    assert page["unreadable"] == {"later-9-9": reason}
