"""Records of a cluster: what a test doesn't name is that of topology "t" in slot 6700 of supervisor "a"."""

from __future__ import annotations

from typing import Any

from storm_on_spark.cluster.records import (
    Assignment,
    CodeManifest,
    Ownership,
    StormBase,
    Submission,
    SupervisorInfo,
    WorkerBeat,
)

SLOT: dict[str, Any] = {"supervisor_id": "a", "host": "h", "port": 6700, "launch": 1}


def storm(topology_id: str = "t", **fields: Any) -> StormBase:
    known = {"name": topology_id, "owner": "me", "status": "ACTIVE", "submitted_at": 0.0, "launch": 1, "conf": {}}
    return StormBase(topology_id=topology_id, **{**known, **fields})


def submission(topology_id: str = "t", **fields: Any) -> Submission:
    known = {"key": "0" * 32, "name": topology_id, "owner": "me", "conf": {}, "step": "storing"}
    return Submission(topology_id=topology_id, **{**known, "initial_status": "ACTIVE", "submitted_at": 0.0, **fields})


def manifest(topology_id: str = "t", **fields: Any) -> CodeManifest:
    known = {"artifacts": (), "uploader": "h:1", "uploaded_at": 0.0, "distributor": "local", "metafile": ""}
    return CodeManifest(topology_id=topology_id, **{**known, **fields})


def supervisor(name: str = "a", **fields: Any) -> SupervisorInfo:
    known = {"host": "h", "slots": (6700, 6701), "started_at": 0.0, "version": "1", "heartbeat_at": 0.0}
    return SupervisorInfo(supervisor_id=name, **{**known, **fields})


def assignment(topology_id: str = "t", **fields: Any) -> Assignment:
    return Assignment(topology_id=topology_id, **{**SLOT, "epoch": 1, "assigned_at": 0.0, **fields})


def ownership(topology_id: str = "t", **fields: Any) -> Ownership:
    return Ownership(topology_id=topology_id, **{**SLOT, "epoch": 1, "pid": 1, **fields})


def beat(topology_id: str = "t", time: float = 1.0, **fields: Any) -> WorkerBeat:
    return WorkerBeat(topology_id=topology_id, time=time, **{**SLOT, "pid": 1, "started_at": 0.0, "info": {}, **fields})
