"""The time of a micro-batch by part: the phases that Spark reports, with its job split into stages."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

_PARTS = {
    "latestOffset": "asking the source for news",
    "getBatch": "asking the source for news",
    "walCommit": "writing the offset log",
    "queryPlanning": "planning",
    "commitOffsets": "writing the commit log",
    "commitBatch": "writing the commit log",
}
"""Spark's names of phases, and ours. `addBatch` is the job and the sink; time in no phase is the rest."""

_STAGES = ("source stage", "stateful stages", "acker stage")
"""Where each is a Spark stage."""
_JOINED = ("the Spark task around the operator", "all stages, in one operator")
"""Where they are one."""

ORDER = (
    "asking the source for news",
    "writing the offset log",
    "planning",
    *_STAGES,
    *_JOINED,
    "job and sink beside the stages",
    "writing the commit log",
    "the rest",
)


def parts(reports: Sequence[Mapping[str, Any]], stages: Sequence[Sequence[float]]) -> dict[str, float]:
    """Returns the medians of the parts of a micro-batch in ms, in the order in which they come.

    Args:
        reports: Spark's progress report of each batch.
        stages: of each batch, though not necessarily the same ones, how long its Spark stages took in ms.
    """
    batches = [report["durationMs"] for report in reports]

    def median(names: Sequence[str]) -> float:
        return float(statistics.median(sum(batch.get(name, 0.0) for name in names) for batch in batches))

    found = {title: median([name for name, its in _PARTS.items() if its == title]) for title in {*_PARTS.values()}}
    if stages and max(map(len, stages)) == 1:
        around, joined = _JOINED
        found[joined] = statistics.median(sum(map(_operator_ms, report["stateOperators"])) for report in reports)
        found[around] = max(0.0, statistics.median(each[0] for each in stages) - found[joined])
    elif stages:
        source, stateful, ackers = _STAGES
        found[source] = statistics.median(each[0] for each in stages)
        found[stateful] = statistics.median(sum(each[1:-1]) for each in stages)
        found[ackers] = statistics.median(each[-1] if len(each) > 1 else 0.0 for each in stages)
    inside = sum(found.get(title, 0.0) for title in (*_STAGES, *_JOINED))
    found["job and sink beside the stages"] = max(0.0, median(["addBatch"]) - inside)
    known = statistics.median(sum(batch.get(name, 0.0) for name in ("addBatch", *_PARTS)) for batch in batches)
    found["the rest"] = max(0.0, median(["triggerExecution"]) - known)
    return {title: round(found[title], 1) for title in ORDER if found.get(title)}


def _operator_ms(operator: Mapping[str, float]) -> float:
    return operator["allUpdatesTimeMs"] + operator["allRemovalsTimeMs"] + operator["commitTimeMs"]


def stages_of(spark: Any, run_id: Any, most: int = 50) -> list[list[float]]:
    """Returns the times of the stages in the last jobs of a query, in ms, in order.

    Args:
        spark: the session.
        run_id: of the query; Spark gives its jobs that group.
        most: how many jobs.
    """
    tracker = spark.sparkContext.statusTracker()
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 # the only place that knows times
    found = []
    for job in sorted(tracker.getJobIdsForGroup(str(run_id)))[-most:]:
        info = tracker.getJobInfo(job)
        if info is None or info.status != "SUCCEEDED":
            continue
        stages = [store.lastStageAttempt(stage) for stage in sorted(info.stageIds)]
        times = [(stage.submissionTime(), stage.completionTime()) for stage in stages]
        if all(began.isDefined() and ended.isDefined() for began, ended in times):
            found.append([float(ended.get().getTime() - began.get().getTime()) for began, ended in times])
    # All except those of a batch without tuples, which has the same stages but nothing in them.
    return [each for each in found if len(each) == max(map(len, found))]
