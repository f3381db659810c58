"""Metrics by OTLP, to a receiver that reads them with the protocol's own messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import MappingProxyType

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from otlp_receiver import Receiver, attributes, points
from waiting import eventually

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.info import (
    ALL_TIME,
    ComponentInfo,
    ComponentWindow,
    ErrorInfo,
    LatencyInfo,
    LoadInfo,
    TaskCounts,
    TopologyInfo,
    WindowInfo,
)
from storm_on_spark.metrics.prometheus import Samples
from storm_on_spark.runtime.processes.diagnostics import otlp
from storm_on_spark.runtime.processes.diagnostics.otlp import OtlpPush, checked_endpoint

NAME = 'a "quoted"\nname'
LATENCY = LatencyInfo(2.0, 1.0, 3.0, 4.0)
COUNTED = ComponentWindow(executed=7, execute=LATENCY, tasks={3: TaskCounts()}, metrics={"hits": {"count": 5}})
INFO = TopologyInfo(
    "words",
    "ACTIVE",
    10.0,
    components={NAME: ComponentInfo(NAME, "bolt", 1, errors=(ErrorInfo(NAME, 3, "no", 0.0, count=2),))},
    windows={name: WindowInfo(name, 600.0, {NAME: COUNTED}, LATENCY) for name in ("600", ALL_TIME)},
    load=LoadInfo(pending={1: 7}, backlog={1: 3}, batch_ms={"executes": 12.0}, state_bytes=100),
)
NOW = 1_700_000_000.0


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("HEADERS", "COMPRESSION", "TIMEOUT", "ENDPOINT", "METRICS_TEMPORALITY_PREFERENCE"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    # However slow the machine is, a push arrives.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
    monkeypatch.setattr(otlp, "_END_SECS", 1000.0)
    receiver = Receiver()
    yield receiver
    receiver.close()


def pushing(receiver: Receiver, every_secs: float = 3600.0, info: TopologyInfo = INFO) -> OtlpPush:
    push = OtlpPush(checked_endpoint(receiver.url), every_secs, "words-1", lambda: info, lambda: NOW)
    push.start()
    return push


def pushes() -> bool:
    """Whether a thread pushes."""
    return any(thread.name == "metrics-otlp" for thread in threading.enumerate())


def test_all_that_prometheus_reads_goes_out(receiver: Receiver) -> None:
    pushing(receiver).close()
    samples = Samples()
    samples.add_topology("words-1", INFO)
    expected = {
        (family.name, labels, value)
        for family, found in samples.families()
        for labels, value in ((dict(zip(family.labels, one, strict=True)), value) for one, value in found)
        for labels in (tuple(sorted(labels.items())),)
    }
    found = {
        (name, tuple(sorted(attributes(point).items())), point.as_double)
        for name, metric in receiver.metrics().items()
        for point in points(metric)
    }
    assert found == expected
    assert len(expected) > 15
    assert receiver.resource() == {"service.name": "storm-on-spark", "service.instance.id": "words-1"}


def test_counters_are_sums_since_the_first_start(receiver: Receiver) -> None:
    pushing(receiver).close()
    metrics = receiver.metrics()
    executed = metrics["storm_component_executed_tuples"]
    assert executed.sum.is_monotonic
    assert executed.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = executed.sum.data_points
    assert (point.as_double, point.time_unix_nano) == (7.0, int(NOW * 1e9))
    assert point.start_time_unix_nano == int((NOW - 600) * 1e9)
    (errors,) = points(metrics["storm_component_errors"])
    assert (errors.as_double, errors.start_time_unix_nano) == (2.0, int((NOW - 10) * 1e9))
    assert [metrics[name].unit for name in ("storm_topology_state_bytes", "storm_topology_batch_seconds")] == [
        "By",
        "s",
    ]
    assert executed.unit == "{tuple}"
    assert metrics["storm_topology_up"].WhichOneof("data") == "gauge"


def test_the_connection_goes_by_opentelemetrys_own_variables(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s3cret-of-a-test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "a team's")
    pushing(receiver).close()
    assert receiver.headers[-1]["api-key"] == "s3cret-of-a-test"
    assert receiver.metrics()["storm_topology_up"]
    assert receiver.resource()["service.name"] == "a team's"


def test_a_collector_that_comes_back_gets_metrics_and_the_log_says_it_once(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 400
    push = pushing(receiver, 0.01)
    eventually(lambda: receiver.asked >= 4, "several refused pushes")
    receiver.status = 200
    eventually(lambda: len(receiver.got) >= 2, "pushes that are taken")
    push.close()
    said = [record.getMessage() for record in caplog.records if "export" in record.getMessage()]
    assert len(said) == 1
    assert "400" in said[0]
    assert [record.getMessage() for record in caplog.records if "again" in record.getMessage()] == [
        "metrics are pushed by OTLP again"
    ]


def test_the_end_is_not_held_up_by_a_collector_that_is_away(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that the test would not end if the end waited for it.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100000")
    monkeypatch.setattr(otlp, "_END_SECS", 100_000.0)
    receiver.status = 503
    push = pushing(receiver, 0.01)
    eventually(lambda: "retrying" in caplog.text, "the pause before another attempt")
    push.close()
    assert not pushes()
    assert receiver.got == []


def test_the_end_leaves_a_collector_that_does_not_answer(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_END_SECS", 0.1)
    receiver.answers.clear()
    push = pushing(receiver, 0.01)
    eventually(lambda: receiver.asked, "a push")
    push.close()
    assert pushes()
    receiver.answers.set()
    eventually(lambda: not pushes(), "the end of the thread")


def test_what_raises_while_metrics_are_gathered_is_said_once(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def raising() -> TopologyInfo:
        asked.append(1)
        raise RuntimeError("Spark is gone")

    push = OtlpPush(receiver.url, 0.01, "words", raising)
    push.start()
    eventually(lambda: len(asked) > 3, "several attempts")
    push.close()
    assert [r.getMessage() for r in caplog.records if r.name == otlp.log.name] == [
        "metrics can't be pushed by OTLP: RuntimeError('Spark is gone')"
    ]


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("localhost:4318", "is a URL like"),
        ("file:///etc/passwd", "is a URL like"),
        ("http://[::1", "is a URL like"),
        ("http://host:99999/v1/metrics", "is a URL like"),
        ("https://ann:s3cret@host/v1/metrics", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("https://host/v1/metrics?key=s3cret", "OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_what_is_no_endpoint_or_shows_a_secret_is_refused(endpoint: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        checked_endpoint(endpoint)
    assert "s3cret" not in str(refused.value)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_is_there", MappingProxyType({}).get)
    with pytest.raises(SetupError, match=r"opentelemetry-sdk, .* \[?.*otlp\]"):
        checked_endpoint("http://localhost:4318/v1/metrics")
