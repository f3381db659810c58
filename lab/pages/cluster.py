"""A Nimbus's knowledge of a large cluster, made up: heartbeats as drivers send them, and a server with the pages."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from typing import Any, Final, cast

from storm_on_spark.api.info import (
    WINDOWS,
    ComponentInfo,
    ComponentWindow,
    LatencyInfo,
    StreamCounts,
    TaskCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.cluster.heartbeats.knowledge import Knowledge
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.nimbus.settings import NimbusSettings
from storm_on_spark.cluster.plan_summary import PlannedEdge, PlannedPart, PlanSummary
from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    NimbusSummary,
    StormBase,
    SupervisorInfo,
    WorkerBeat,
)
from storm_on_spark.cluster.state import ClusterSnapshot
from storm_on_spark.cluster.state.snapshot import Code
from storm_on_spark.metrics.packed import pack_windows
from storm_on_spark.web.access.gate import Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.nimbus import ClusterLogin
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.sites.cluster import ClusterSite

_BEAT_SECS: Final = 3.0


class KnownCluster:
    """What the pages ask of a Nimbus's `Control`; a new heartbeat of each topology comes every few seconds.

    Args:
        topologies: how many.
        components: of each.
    """

    def __init__(self, topologies: int, components: int) -> None:
        self.conf: dict[str, Any] = {}
        self.settings = NimbusSettings.of({})
        self.address, self.user, self.version, self.scheme = "n:6627", "lab", "1", "http"
        self.stale_since = None
        self.started = time.time()
        info = _info(components)
        # The content of a heartbeat, made once; its readers can't know that it is always the same.
        self._document = {**info.to_dict(), "windows": pack_windows(info.windows)}
        self._plan = _plan(components)
        self._names = [f"topology-{at:03}-{at}-1700000000" for at in range(1, topologies + 1)]
        #: The last heartbeat of each topology, and its number.
        self._beats: dict[str, tuple[int, WorkerBeat]] = {}
        # A Nimbus has the same records until they change.
        self._storms = {
            name: StormBase(
                topology_id=name, name=name, owner="lab", status="ACTIVE", submitted_at=0.0, launch=1, conf={}
            )
            for name in self._names
        }

    def now(self) -> float:
        return time.time()

    def heartbeats(self) -> Knowledge:
        return Knowledge()

    def errors(self, topology_id: str) -> dict[str, list[Any]]:
        return {}

    def changes(self) -> list[Any]:
        return []

    def topology(self, topology_id: str) -> StormBase:
        return self.snapshot().storms[topology_id]

    def snapshot(self) -> ClusterSnapshot:
        now = self.now()
        place: dict[str, Any] = {"supervisor_id": "s", "host": "h", "port": 6700, "launch": 1}
        for at, name in enumerate(self._names):
            # Each driver has a time of its own.
            turn = int(now / _BEAT_SECS + at / len(self._names))
            if name not in self._beats or self._beats[name][0] != turn:
                beat = WorkerBeat(
                    topology_id=name, **place, pid=1, time=now, started_at=self.started, info=dict(self._document)
                )
                self._beats[name] = turn, beat
        manifest = CodeManifest(
            topology_id="", artifacts=(), uploader="n:6627", uploaded_at=0.0, distributor="local", metafile="",
            plan=self._plan,
        )  # fmt: skip
        return ClusterSnapshot(
            nimbuses={"n:6627": NimbusSummary(host="n", port=6627, started_at=self.started, version="1")},
            supervisors={
                "s": SupervisorInfo(
                    supervisor_id="s", host="h", slots=(6700,), started_at=0.0, version="1", heartbeat_at=now
                )
            },
            storms=self._storms,
            assignments={
                name: Assignment(
                    topology_id=name, supervisor_id="s", host="h", port=6700, launch=1, epoch=1, assigned_at=0.0
                )
                for name in self._names
            },
            workerbeats={name: beat for name, (_, beat) in self._beats.items()},
            code={name: Code(manifest, frozenset({"n:6627"})) for name in self._names},
        )


def _info(components: int) -> TopologyInfo:
    latency = LatencyInfo(1.0, 1.0, 2.0, 3.0)
    parts, counted = {}, {}
    for at in range(components):
        name = f"component-{at:02}"
        parts[name] = ComponentInfo(name, "bolt" if at else "spout", 4, 1000 * at, 5000, 5000, 5000, 1, 0.5)
        streams = (StreamCounts("default", "", 5000, 5000, 1000 * at, 5000, 1),)
        tasks = {4 * at + task: TaskCounts(5000, 5000, 1000, 5000, 1, latency) for task in range(1, 5)}
        counted[name] = ComponentWindow(
            5000, 5000, 1000, 5000, 1, latency, busy_secs=9.0 * at, streams=streams, tasks=tasks
        )
    windows = {name: WindowInfo(name, 600.0, counted, latency) for name in WINDOWS}
    return TopologyInfo("t", "ACTIVE", 900.0, 5000, 5000, 5000, 1, 7, {"p50": 1.0, "p95": 2.0, "p99": 3.0}, parts,
                        windows=windows)  # fmt: skip


def _plan(components: int) -> PlanSummary:
    names = [f"component-{at:02}" for at in range(components)]
    parts = {
        name: PlannedPart("bolt" if at else "spout", tuple(range(4 * at + 1, 4 * at + 5)), 4)
        for at, name in enumerate(names)
    }
    edges = [PlannedEdge(names[(at - 1) // 3], "default", name, "shuffle") for at, name in enumerate(names) if at]
    return PlanSummary(parts, tuple(edges), (4 * components + 1,))


def main() -> None:
    """Serves the pages of a large cluster, prints the port, and ends with its standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("topologies", type=int)
    parser.add_argument("components", type=int)
    given = parser.parse_args()
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    known = cast(Control, KnownCluster(given.topologies, given.components))
    app = App(ClusterSite(known), Gate(Sessions(), ClusterLogin(Authentication(), known), port), TOPOLOGIES)
    with HttpServer(app.asgi(), listener):
        # As `storm-spark nimbus` does.
        gc.collect()
        gc.freeze()
        print(port, flush=True)
        sys.stdin.read()
        app.close()


if __name__ == "__main__":
    main()
