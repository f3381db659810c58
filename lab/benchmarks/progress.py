"""Spark's own reports on micro-batches."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any


def recent(query: Any, began: float) -> list[dict[str, Any]]:
    """Returns the reports on the micro-batches of a query that had rows and started after a moment.

    Args:
        query: it keeps as many reports as `spark.sql.streaming.numRecentProgressUpdates` says.
        began: the moment, in seconds since the epoch.
    """
    # As JSON it is one call to the JVM for each; PySpark's own objects take one for each number in them.
    reports = [json.loads(report.json()) for report in query._jsq.recentProgress()]  # noqa: SLF001
    return [report for report in reports if report["numInputRows"] and start(report) >= began]


def start(report: dict[str, Any]) -> float:
    """Returns when a micro-batch started, in seconds since the epoch."""
    return datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00")).timestamp()


def end(report: dict[str, Any]) -> float:
    """Returns when it was committed, in seconds since the epoch."""
    return start(report) + float(report["durationMs"]["triggerExecution"]) / 1000
