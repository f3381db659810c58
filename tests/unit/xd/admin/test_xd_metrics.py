"""`/metrics` of an admin."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.xd.rest_server import CONTAINER, Admin


def test_an_admin_tells_prometheus_what_is_deployed() -> None:
    admin = Admin()
    for name in ("one", "two"):
        assert admin.ask("POST", "/streams/definitions", {"name": name, "definition": "time | log"})[0] < 300
    assert admin.ask("POST", "/streams/deployments/one")[0] < 300
    response = admin.send("GET", "/metrics")
    assert response.status_code == 200
    told = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    deployments = {labels: value for (name, labels), value in told.items() if name == "storm_xd_deployments"}
    assert sum(deployments.values()) == 1
    assert {dict(labels)["kind"] for labels in deployments} == {"stream"}
    assert told["storm_xd_containers", ()] == len(admin.runtime.containers())
    for name, value in {
        "modules": 2,
        "received_messages_total": 30,
        "emitted_messages_total": 20,
        "memory_bytes": 1,
        "cores": 0.5,
    }.items():
        found = {labels: value for (found, labels), value in told.items() if found == f"storm_xd_container_{name}"}
        assert found == {(("container", CONTAINER), ("host", "ultrafox.local")): value}
    assert ("process_resident_memory_bytes", ()) in told
