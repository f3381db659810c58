"""The REST interface of a Nimbus in this process: who may ask, how much, and what it says of itself."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from world import World, wait_for

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.auth import REALM

TOKEN = "0123456789abcdef"


@pytest.fixture
def conf(world: World, tmp_path: Path) -> dict[str, Any]:
    return {**world.conf, "storm.local.dir": str(tmp_path / "local")}


@pytest.fixture
def nimbus(conf: dict[str, Any]) -> Iterator[Nimbus]:
    with Nimbus(conf, port=0) as nimbus:
        yield nimbus


@pytest.fixture
def http(nimbus: Nimbus) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{nimbus.address}/api/v1", trust_env=False) as http:
        yield http


def secret(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return os.fspath(path)


@pytest.mark.representative
def test_every_page_is_there(http: httpx.Client) -> None:
    for path in ("cluster/summary", "nimbus/summary", "supervisor/summary", "topology/summary", "supervisor?id=x"):
        answer = http.get(f"/{path}")
        assert answer.status_code == 200, path
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
    configuration = http.get("/cluster/configuration").json()
    assert configuration["nimbus.seeds"] == ["localhost"]


def test_errors_have_storm_uis_shape(http: httpx.Client) -> None:
    cases = [
        (404, "Not Alive", http.get("/topology/nothing-1-1")),
        (404, "Not Alive", http.get("/topology/nothing-1-1/component/x")),
        (404, "Not Alive", http.get(f"/submission/{'0' * 32}")),
        (404, "Not Found", http.get("/nothing")),
        (404, "Not Found", http.get("/code/nothing-1-1/code.zip")),
        (405, "Method Not Allowed", http.get("/topology/x/activate")),
        (400, "Bad Request", http.get("/supervisor")),
        (400, "Bad Configuration", http.get("/submission/xyz")),
    ]
    for status, error, answer in cases:
        assert (answer.status_code, answer.json()["error"]) == (status, error)
        assert answer.json()["errorMessage"]


def test_requests_that_make_no_sense(world: World, nimbus: Nimbus, http: httpx.Client) -> None:
    world.leader()
    wait_for(lambda: http.post("/topology/x/activate").status_code == 404, "it leads")
    for wait in ("-1", "x", "1e9", "nan", "1" * 20, "0x1"):
        answer = http.post(f"/topology/x/kill/{wait}")
        assert (answer.status_code, answer.json()["error"]) == (409, "Conflict"), wait
    bodies = [b"", b"{", b"[]", b"\xff", b'{"key": 3}', b'{"name": "a", "key": "b", "artifacts": [], "x": 1}']
    for body in bodies:
        answer = http.post("/topology/submit", content=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "Bad Request"), body
    assert http.post("/topology/x/rebalance/0", content=b'{"conf": 3}').status_code == 400
    assert (
        http.post("/topology/x/rebalance/0", content=b'{"rebalanceOptions": {"executors": {"a": "2"}}}').status_code
        == 404
    )


def test_limits(world: World, nimbus: Nimbus, http: httpx.Client) -> None:
    world.leader()
    wait_for(lambda: http.post("/topology/x/activate").status_code == 404, "it leads")
    large = http.post("/topology/submit", content=b" " * ((1 << 20) + 1))
    assert (large.status_code, large.json()["error"]) == (413, "Too Much")
    announced = http.put(f"/submission/{'0' * 32}/conf.json", content=b"x" * ((1 << 20) + 1))
    assert (announced.status_code, announced.json()["error"]) == (413, "Too Much")

    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 65536

    try:
        unannounced = http.put(f"/submission/{'0' * 32}/conf.json", content=endless())
        assert unannounced.status_code == 413
    except httpx.WriteError:
        pass  # It hung up, which is as good.
    wrong = http.put(f"/submission/{'0' * 32}/secrets.txt", content=b"x")
    assert (wrong.status_code, wrong.json()["error"]) == (400, "Bad Code")
    good = http.put(f"/submission/{'0' * 32}/conf.json", content=b"{}")
    assert good.json() == {"name": "conf.json", "size": 2, "sha256": hashlib.sha256(b"{}").hexdigest()}


def test_an_upload_that_stops_ends(conf: dict[str, Any], world: World) -> None:
    with Nimbus({**conf, "nimbus.file.copy.expiration.secs": 1}, port=0) as nimbus:
        world.leader()
        host, _, port = nimbus.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = f"PUT /api/v1/submission/{'0' * 32}/conf.json HTTP/1.1\r\nHost: {nimbus.address}\r\n"
            connection.sendall(f"{head}Content-Length: 100\r\n\r\nhalf".encode())
            answer = b""
            while b"no byte came for 1 s" not in answer:
                part = connection.recv(4096)
                assert part, answer
                answer += part
            assert answer.startswith(b"HTTP/1.1 413")


def test_other_hosts_pages_get_nothing(nimbus: Nimbus, http: httpx.Client) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = http.get("/cluster/summary", headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (403, "Unauthorized")


def test_a_public_address_is_refused_without_authentication(conf: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match=r"^nimbus\.bind\.address '0\.0\.0\.0' can be reached from other hosts"):
        Nimbus({**conf, "nimbus.bind.address": "0.0.0.0"}, port=0).start()


def test_with_a_token_and_users(conf: dict[str, Any], world: World, tmp_path: Path) -> None:
    token_file = secret(tmp_path / "token", TOKEN)
    hashed = hashlib.sha256(f"ann:{REALM}:pass".encode()).hexdigest()
    guarded = {
        **conf,
        "nimbus.auth.token.file": token_file,
        "nimbus.auth.digest.file": secret(tmp_path / "users", f"ann:{REALM}:{hashed}"),
    }
    with Nimbus(guarded, port=0) as nimbus:
        with httpx.Client(base_url=f"http://{nimbus.address}/api/v1", trust_env=False) as http:
            for path in ("cluster/summary", "openapi.json", "code/x/code.zip", "nothing"):
                answer = http.get(f"/{path}")
                assert (answer.status_code, answer.json()["error"]) == (401, "Unauthorized"), path
            assert [c.split()[0] for c in answer.headers.get_list("www-authenticate", split_commas=False)] == [
                "Digest",
                "Storm-HMAC",
                "Bearer",
            ]
            wrong = http.get("/cluster/summary", headers={"Authorization": "Bearer 0123456789abcdeX"})
            assert wrong.status_code == 401
            assert TOKEN not in wrong.text
            right = http.get("/cluster/configuration", headers={"Authorization": f"Bearer {TOKEN}"})
            assert right.status_code == 200
            assert TOKEN not in right.text
        seeds = [nimbus.address]
        with NimbusClient({"nimbus.auth.token.file": token_file}, seeds=seeds) as client:
            assert client.cluster()["topologies"] == 0
            assert client.submit(world.packed(), "words").startswith("words-1-")
        with NimbusClient(seeds=seeds, auth=("ann", "pass")) as client:
            assert [client.cluster()["topologies"] for _ in range(3)] == [1, 1, 1]
            client.deactivate("words")
        for auth in (("ann", "wrong"), ("bob", "pass"), None):
            with (
                NimbusClient(seeds=seeds, auth=auth) as client,
                pytest.raises(AuthenticationError, match=f"^Nimbus {nimbus.address}: "),
            ):
                client.cluster()
        # Code travels between guarded Nimbuses.
        other = {**guarded, "storm.local.dir": str(tmp_path / "other")}
        with Nimbus(other, port=0) as second:
            world.until(lambda seen: [len(c.replicas) for c in seen.code.values()] == [2], "fetched with the token")
            with NimbusClient({"nimbus.auth.token.file": token_file}, seeds=[second.address]) as client:
                client.activate("words")


def test_it_describes_itself(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    paths = document["paths"]
    assert "get" in paths["/api/v1/topology/{id}/component/{component}"]
    assert set(paths["/api/v1/topology/{id}/kill/{wait}"]) == {"post"}
    names = set(document["components"]["schemas"])
    references = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if "$ref" in part:
                references.add(part["$ref"].removeprefix("#/components/schemas/"))
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(document)
    assert references == names, "every schema is used, and every one that is used is there"
    summary = http.get("/cluster/summary").json()
    assert set(summary) == set(document["components"]["schemas"]["ClusterSummary"]["properties"])
    json.dumps(document)
    assert msgspec.json.decode(json.dumps(document)) == document


def test_two_can_not_share_their_files(nimbus: Nimbus, conf: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match=r"another Nimbus uses .*local/nimbus; each needs its own storm\.local\.dir"):
        Nimbus(conf, port=0).start()


def test_nothing_is_left_when_it_cannot_start(conf: dict[str, Any]) -> None:
    away = {**conf, "storm.zookeeper.servers": ["127.0.0.1:1"], "storm.zookeeper.connection.timeout": 300}
    for _ in range(2):
        with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
            Nimbus(away, port=0).start()
