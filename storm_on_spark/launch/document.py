"""The document that a run prints for programs: `storm-spark run --json`, `python job.py --json`, `spark-submit`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from storm_on_spark.api.info import COUNTERS, TopologyInfo

_TOTALS = ("emitted", "transferred", "acked", "failed", "pending")
_OF_COMPONENTS = (*COUNTERS, "execute_latency_ms", "metrics")


def document(name: str | None, info: TopologyInfo | None, error: str | None, result: Any = None) -> dict[str, Any]:
    """Returns what a run says of itself; `info` is None for a topology that never ran."""
    data = (info or TopologyInfo(name or "", "FAILED", 0.0)).to_dict()
    found = {
        "topology": name,
        **{key: data[key] for key in _TOTALS},
        "seconds": round(data["uptime_secs"], 3),
        "complete_latency_ms": data["complete_latency_ms"],
        "components": {
            component: {key: numbers[key] for key in _OF_COMPONENTS if key in numbers}
            for component, numbers in data["components"].items()
        },
        "error": error,
    }
    return found if result is None else {**found, "result": result}


def to_json(value: Any) -> str:
    r"""Returns a document as JSON that every program reads.

    What JSON has no words for becomes text, and a number that is none, or has no end, becomes null.

    >>> to_json({"a": float("nan"), ("b", 1): {2.5, }, "c": (1, None)})
    '{"a": null, "(\'b\', 1)": [2.5], "c": [1, null]}'
    """
    return json.dumps(_plain(value), default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
