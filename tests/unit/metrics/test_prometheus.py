"""Prometheus' text, read back by its own client library."""

from __future__ import annotations

import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from storm_on_spark.api.info import (
    ALL_TIME,
    ComponentInfo,
    ComponentWindow,
    LatencyInfo,
    LoadInfo,
    TaskCounts,
    TopologyInfo,
    WindowInfo,
    WorkerInfo,
)
from storm_on_spark.metrics.prometheus import FAMILIES, Samples, process_text

ROOT = Path(__file__).parents[3]
NAME = 'a "quoted"\nname \\ and more'
LATENCY = LatencyInfo(2.0, 1.0, 3.0, 4.0)
COUNTED = ComponentWindow(
    executed=7,
    execute=LATENCY,
    process=LATENCY,
    busy_secs=300.0,
    tasks={3: TaskCounts()},
    metrics={"hits": {"count": 5}},
)
INFO = TopologyInfo(
    "words",
    "ACTIVE",
    12.5,
    components={NAME: ComponentInfo(NAME, "bolt", 1)},
    windows={name: WindowInfo(name, 600.0, {NAME: COUNTED}, LATENCY) for name in ("600", ALL_TIME)},
    load=LoadInfo(pending={1: 7}, backlog={1: 3}, batch_ms={"executes": 12.0}, worker=WorkerInfo(2, 1000, 3.5)),
)


def read(text: bytes) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text.decode())
    }


def test_names_with_quotes_and_newlines_are_labels() -> None:
    samples = Samples()
    samples.add_topology("words-1", INFO)
    found = read(samples.text())
    place = {"topology": "words-1", "component": NAME}
    assert found["storm_component_executed_tuples"] == [(place, 7.0)]
    assert found["storm_component_capacity"] == [(place, 0.5)]
    assert ({**place, "quantile": "0.99"}, 0.004) in found["storm_component_execute_latency_seconds"]
    assert found["storm_component_metric"] == [({**place, "metric": "hits"}, 5.0)]
    assert found["storm_topology_batch_seconds"] == [({"topology": "words-1", "part": "executes"}, 0.012)]


def test_all_that_a_topology_tells_is_in_the_table() -> None:
    samples = Samples()
    samples.add_topology("words-1", INFO)
    assert set(read(samples.text())) <= set(FAMILIES)
    assert "process_resident_memory_bytes" in read(process_text([samples]))


def test_every_name_is_documented_with_its_meaning() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    for family in FAMILIES.values():
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in family.labels)
        assert f"| `{name}` | {family.kind} | {labels} | {family.meaning} |" in page


def test_the_dashboard_asks_for_names_that_there_are() -> None:
    dashboard = json.loads((ROOT / "conf" / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    known = [f"{name}_total" if family.kind == "counter" else name for name, family in FAMILIES.items()]
    assert len(asked) >= 8
    for expression in asked:
        assert any(name in expression for name in known), expression
