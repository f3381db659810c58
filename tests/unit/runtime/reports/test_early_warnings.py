"""Early warnings: each rule fires when it should, and stays silent when it should or when it knows nothing."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.runtime.reports.early_warnings import RULES, Facts, early_warnings


def info(**fields: Any) -> TopologyInfo:
    return TopologyInfo("t", fields.pop("status", "ACTIVE"), 100.0, **fields)


def bolt(failed: int) -> dict[str, ComponentInfo]:
    return {"b": ComponentInfo("b", "bolt", 1, failed=failed)}


@pytest.mark.parametrize(
    ("rule", "facts", "silent"),
    [
        ("failed", Facts(info(status="FAILED", error="no disk")), Facts(info())),
        ("slot", Facts(waits="no supervisor"), Facts()),
        (
            "backlog",
            Facts(info(pending=2000), info(pending=1500), 10.0),
            Facts(info(pending=2000), info(pending=1900), 10.0),
        ),
        ("backlog", Facts(lag={"s": 5000}, lag_before={"s": 1000}), Facts(lag={"s": 5000}, lag_before={"s": 4900})),
        ("capacity", Facts(capacity={"b": 0.9}), Facts(capacity={"b": 0.89})),
        (
            "time-outs",
            Facts(info(failed=10), info(failed=3), 10.0),
            # Bolts failed them: these are no time-outs.
            Facts(info(failed=10, components=bolt(7)), info(failed=3, components=bolt(0)), 10.0),
        ),
        (
            "time-outs",
            Facts(info(complete_latency_ms={"p99": 25_000.0}), message_timeout_secs=30.0),
            Facts(info(complete_latency_ms={"p99": 25_000.0})),
        ),
        (
            "checkpoint",
            Facts(state_bytes=200 << 20, state_bytes_before=100 << 20),
            Facts(state_bytes=2 << 20, state_bytes_before=1 << 20),
        ),
        ("code", Facts(replicas=1, replicas_wanted=2), Facts(replicas=2, replicas_wanted=2)),
        ("heartbeats", Facts(heartbeats_unknown="ZooKeeper is away"), Facts()),
        ("heartbeats", Facts(beat_age_secs=16.0), Facts(beat_age_secs=14.0)),
        ("spout", Facts(info(pending=100), most_pending=100), Facts(info(pending=100))),
    ],
)
def test_a_rule_fires_when_it_should_and_only_then(rule: str, facts: Facts, silent: Facts) -> None:
    assert [warning.rule for warning in early_warnings(facts)] == [rule]
    assert early_warnings(silent) == []


def test_of_nothing_nothing_is_said() -> None:
    assert early_warnings(Facts()) == []


def test_every_rule_says_what_it_means_and_what_to_do() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.meaning.endswith(".") and rule.advice.endswith(".") for rule in RULES)
