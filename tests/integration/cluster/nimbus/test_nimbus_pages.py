"""The pages of Nimbuses: who gets in, what a reader may do, and that a follower hands an action to the leader."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from world import World, wait_for

from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.http.auth import REALM
from storm_on_spark.web.nimbus import NimbusPages

TOKEN = "0123456789abcdef" * 2
USERS = {"ada": "countess", "bob": "builder"}


def secret(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return os.fspath(path)


@pytest.fixture
def conf(world: World, tmp_path: Path) -> dict[str, Any]:
    hashes = {user: hashlib.sha256(f"{user}:{REALM}:{word}".encode()).hexdigest() for user, word in USERS.items()}
    users = "".join(f"{user}:{REALM}:{digest}\n" for user, digest in hashes.items())
    return {
        **world.conf,
        "nimbus.auth.token.file": secret(tmp_path / "token", TOKEN),
        "nimbus.auth.digest.file": secret(tmp_path / "users", users),
        "nimbus.admins": ["ada"],
    }


@pytest.fixture
def nimbuses(conf: dict[str, Any], tmp_path: Path) -> Iterator[list[Nimbus]]:
    """Two; the first one leads."""
    own = [{**conf, "storm.local.dir": str(tmp_path / name)} for name in ("first", "second")]
    with Nimbus(own[0], port=0, pages=NimbusPages) as first:
        with client_of(conf, first) as client:
            wait_for(lambda: any(each["is_leader"] for each in client.cluster()["nimbuses"]), "a leader")
        with Nimbus(own[1], port=0, pages=NimbusPages) as second:
            yield [first, second]


def client_of(conf: dict[str, Any], nimbus: Nimbus) -> NimbusClient:
    found = {key: conf[key] for key in ("nimbus.auth.token.file",)}
    return NimbusClient(found, seeds=[nimbus.address])


@contextlib.contextmanager
def browser(nimbus: Nimbus, **login: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{nimbus.address}", trust_env=False, follow_redirects=True) as found:
        if login:
            assert found.post("/ui/login", data=login).status_code == 200
        yield found


def csrf_of(client: httpx.Client) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/ui/").text)
    assert found is not None
    return found[1]


def test_nobody_sees_more_than_the_login(nimbuses: list[Nimbus]) -> None:
    with browser(nimbuses[0]) as nobody:
        for where in ("/", "/ui/", "/ui/supervisors", "/ui/configuration", "/ui/changes", "/ui/logs"):
            assert nobody.get(where).status_code == 401
        assert nobody.post("/ui/login", data={"secret": "wrong"}).status_code == 403
        assert nobody.post("/ui/login", data={"user": "ada", "secret": "wrong"}).status_code == 403
        assert nobody.post("/ui/login", data={"user": "eve", "secret": ""}).status_code == 403
        assert nobody.post("/ui/login", data={"secret": TOKEN}, headers={"Origin": "http://evil"}).status_code == 403
        assert nobody.post("/api/v1/ui-login").status_code == 401
        # The interface that was there stays as it is.
        assert nobody.get("/api/v1/cluster/summary").status_code == 401


@pytest.mark.representative
def test_a_follower_hands_an_action_to_the_leader_and_both_say_who_did_it(
    world: World, conf: dict[str, Any], nimbuses: list[Nimbus]
) -> None:
    first, second = nimbuses
    with client_of(conf, first) as client:
        topology_id = client.submit(world.packed(), "words", owner="ada")
        link = client.ui_link()
    with browser(first) as operator:
        page = operator.get(link.replace(f"http://{first.address}", ""))
        assert page.status_code == 200
        assert "words" in page.text
        topology = operator.get(f"/ui/topology/{topology_id}").text
        assert "the topology waits for a slot" in topology
    act = f"/ui/topology/{topology_id}/act"
    with browser(second, user="bob", secret="builder") as reader:
        wait_for(lambda: reader.get(f"/ui/topology/{topology_id}").status_code == 200, "the follower knows it")
        form = {"csrf": csrf_of(reader), "sure": "yes"}
        assert reader.post(f"{act}/deactivate", data=form).status_code == 403
        level = {"logger": "my.bolt", "level": "DEBUG", "secs": "600"}
        assert reader.post(f"{act}/log-level", data={**form, **level}).status_code == 403
    with browser(second, user="ada", secret="countess") as admin:
        form = {"csrf": csrf_of(admin), "sure": "yes"}
        assert "words is deactivated" in admin.post(f"{act}/deactivate", data=form).text
        assert admin.post(f"{act}/kill", data={**form, "wait": "soon"}).status_code >= 400
        assert "my.bolt logs DEBUG for 600 s" in admin.post(f"{act}/log-level", data={**form, **level}).text
        for wrong in ({"level": "LOUD"}, {"secs": "soon"}, {"secs": "9" * 8}, {"logger": ""}):
            assert admin.post(f"{act}/log-level", data={**form, **level, **wrong}).status_code == 400, wrong
        logs = f"/ui/topology/{topology_id}/logs"
        wait_for(lambda: "<b>my.bolt</b> DEBUG until" in admin.get(logs).text, "the follower shows it")
    with browser(first, secret=TOKEN) as operator:
        wait_for(lambda: "INACTIVE" in operator.get(f"/ui/topology/{topology_id}").text, "it is inactive")

        def listed() -> list[list[str]]:
            rows = re.findall(r"<tr><td[^>]*>.*?</tr>", operator.get(f"/ui/topology/{topology_id}/changes").text)
            return [re.findall(r"<td[^>]*>(.*?)</td>", row)[1:] for row in rows]

        wait_for(lambda: len(listed()) == 3, "all changes are listed")
        assert listed()[0] == ["ada", "log level, my.bolt=DEBUG for 600 s"]
        assert listed()[1] == ["ada", "deactivate"]
        assert listed()[2][1] == "submit"


def test_every_method_of_rest_as_nobody_a_reader_and_an_admin(conf: dict[str, Any], nimbuses: list[Nimbus]) -> None:
    root = f"http://{nimbuses[0].address}"
    with (
        httpx.Client(trust_env=False) as nobody,
        httpx.Client(auth=httpx.DigestAuth("bob", "builder"), trust_env=False) as reader,
        httpx.Client(auth=httpx.DigestAuth("ada", "countess"), trust_env=False) as admin,
    ):
        paths = admin.get(f"{root}/api/v1/openapi.json").json()["paths"]
        tried = set()
        for path, methods in paths.items():
            for method in methods:
                if method not in ("get", "post", "put"):
                    continue
                where = root + re.sub(r"\{[^}]+\}", "x", path)
                tried.add(method)
                assert nobody.request(method, where).status_code == 401, (method, path)
                status = reader.request(method, where).status_code
                # The code holds secrets of the configuration.
                assert (status == 403) is (method != "get" or "/code/" in path), (method, path, status)
                assert admin.request(method, where).status_code not in (401, 403), (method, path)
        assert tried == {"get", "post", "put"}


def test_a_reader_changes_nothing_by_rest(conf: dict[str, Any], nimbuses: list[Nimbus]) -> None:
    root = f"http://{nimbuses[0].address}/api/v1"
    with httpx.Client(auth=httpx.DigestAuth("bob", "builder"), trust_env=False) as reader:
        assert reader.get(f"{root}/cluster/summary").status_code == 200
        refused = reader.post(f"{root}/topology/x/kill/0")
        assert refused.status_code == 403
        assert "nimbus.admins" in refused.json()["errorMessage"]
        assert reader.put(f"{root}/submission/{'0' * 32}/code.zip", content=b"x").status_code == 403
        assert reader.post(f"{root}/ui-login").status_code == 403
    with httpx.Client(auth=httpx.DigestAuth("ada", "countess"), trust_env=False) as admin:
        assert admin.post(f"{root}/topology/x/kill/0").status_code == 404


def test_without_a_secret_this_host_is_an_operator_and_other_names_are_refused(world: World, tmp_path: Path) -> None:
    conf = {**world.conf, "storm.local.dir": str(tmp_path / "local")}
    with Nimbus(conf, port=0, pages=NimbusPages) as nimbus, browser(nimbus) as anybody:
        assert "(operator)" in anybody.get("/ui/").text
        assert anybody.get("/ui/", headers={"Host": "evil.example"}).status_code == 403
        act = "/ui/topology/x/act/kill"
        assert anybody.post(act, data={"sure": "yes", "csrf": ""}).status_code == 403
        form = {"sure": "yes", "csrf": csrf_of(anybody)}
        assert anybody.post(act, data=form).status_code == 404
        assert anybody.post(act, data=form, headers={"Origin": "http://evil"}).status_code == 403
