from __future__ import annotations

import json
import pickle

import pytest

from storm_on_spark.api import (
    BaseTaskHook,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    ComponentInfo,
    EmitInfo,
    ErrorInfo,
    Fields,
    SpoutAckInfo,
    SpoutFailInfo,
    TopologyInfo,
)
from storm_on_spark.api.tuple import Delivery, Tuple

tup = Tuple.of(["storm"], Delivery("split", "default", 3, Fields("word")), 0)


@pytest.mark.parametrize(
    ("event", "info"),
    [
        ("emit", EmitInfo(["storm"], "default", 1, [2, 3])),
        ("spout_ack", SpoutAckInfo("id", 1, 12.5)),
        ("spout_fail", SpoutFailInfo("id", 1, None)),
        ("bolt_execute", BoltExecuteInfo(tup, 2, 0.1)),
        ("bolt_ack", BoltAckInfo(tup, 2, None)),
        ("bolt_fail", BoltFailInfo(tup, 2, None)),
    ],
)
def test_a_hook_may_ignore_every_event(event: str, info: object) -> None:
    hook = BaseTaskHook()
    hook.prepare({}, None)  # type: ignore[arg-type]
    getattr(hook, event)(info)
    hook.cleanup()


def test_topology_info_as_json() -> None:
    error = ErrorInfo("count", 4, "KeyError: 'x'", 1_700_000_000.5)
    count = ComponentInfo("count", "bolt", 2, executed=5, acked=4, failed=1, execute_latency_ms=0.2, errors=(error,))
    info = TopologyInfo(
        "words",
        "FAILED",
        3.5,
        emitted=5,
        transferred=10,
        acked=4,
        failed=1,
        complete_latency_ms={"p50": 1.0, "p95": 2.0, "p99": 3.0},
        components={"count": count},
        error="the disk is full",
    )
    assert json.loads(json.dumps(info.to_dict())) == {
        "name": "words",
        "status": "FAILED",
        "uptime_secs": 3.5,
        "emitted": 5,
        "transferred": 10,
        "acked": 4,
        "failed": 1,
        "pending": 0,
        "complete_latency_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0},
        "components": {
            "count": {
                "id": "count",
                "kind": "bolt",
                "tasks": 2,
                "executed": 5,
                "emitted": 0,
                "transferred": 0,
                "acked": 4,
                "failed": 1,
                "execute_latency_ms": 0.2,
                "errors": [
                    {
                        "component": "count",
                        "task": 4,
                        "message": "KeyError: 'x'",
                        "time": 1_700_000_000.5,
                        "trace": "",
                        "input": "",
                        "count": 1,
                        "first_time": 1_700_000_000.5,
                        "file": None,
                        "line": None,
                    }
                ],
            }
        },
        "system_errors": [],
        "error": "the disk is full",
        "error_trace": "",
        "error_input": "",
        "mode": "",
        "repetition": None,
    }
    assert pickle.loads(pickle.dumps(info)) == info


def test_a_topology_that_has_done_nothing() -> None:
    info = TopologyInfo("words", "ACTIVE", 0.0)
    assert info.to_dict()["complete_latency_ms"] is None
    assert info.to_dict()["components"] == {}
