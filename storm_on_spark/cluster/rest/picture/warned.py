"""Early warnings of a cluster's topologies, from what a Nimbus knows."""

from __future__ import annotations

import dataclasses
from typing import Final

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.cluster.records import StormBase
from storm_on_spark.cluster.rest.picture.limits import limits_of
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.runtime.reports.early_warnings import EarlyWarning, Facts, early_warnings, with_load

_WINDOW: Final = "600"
"""Without successive looks, what is said is about the last ten minutes."""


def topology_warnings(picture: Picture, base: StormBase) -> list[EarlyWarning]:
    """Returns the early warnings about a topology: for REST, `/metrics` and `status`."""
    return early_warnings(facts_of(picture, base))


def facts_of(picture: Picture, base: StormBase) -> Facts:
    """Returns what a Nimbus knows of a topology at one moment."""
    topology_id, snapshot = base.topology_id, picture.snapshot
    limits = limits_of(topology_id, base.conf)
    info, beat, code = picture.info(topology_id), snapshot.workerbeats.get(topology_id), snapshot.code.get(topology_id)
    components = picture.components(base)
    executors = {name: count for name, (_, _, count) in components.items()}
    spouts = sum(tasks for kind, tasks, _ in components.values() if kind.endswith("spout"))
    window = None if info is None else info.windows.get(_WINDOW)
    unknown = picture.heartbeats.unknown_since is not None
    plan = picture.plan(topology_id)
    facts = Facts(
        info,
        None if info is None or window is None else _before(info, _WINDOW),
        0.0 if window is None else window.secs,
        {}
        if window is None
        else {
            name: part.capacity_over(window.secs, executors.get(name, 1)) for name, part in window.components.items()
        },
        limits.message_timeout_secs,
        None if limits.max_pending is None else limits.max_pending * spouts,
        replicas=0 if code is None else len(code.replicas),
        replicas_wanted=max(1, limits.min_replicas, len(snapshot.nimbuses)),
        heartbeats_unknown=picture.heartbeats.reason if unknown else "",
        beat_age_secs=picture.now - beat.time if beat is not None and info is not None else None,
        waits=picture.waiting.get(topology_id, ""),
    )
    return with_load(facts, {} if plan is None else {name: part.tasks for name, part in plan.components.items()})


def _before(info: TopologyInfo, window: str) -> TopologyInfo:
    """Returns the counters at the beginning of a window; what has no window is as it is now."""
    counted, whole = info.over(window), info.over(":all-time")
    components = {
        name: dataclasses.replace(part, failed=part.failed - counted.components.get(name, _NONE).failed)
        for name, part in whole.components.items()
    }
    return dataclasses.replace(info, failed=whole.failed - counted.failed, components=components)


_NONE: Final = ComponentInfo("", "", 0)
