"""Every method of REST and every page, as nobody, a stranger, a reader, an operator, the owner and an admin."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import httpx
import pytest
from guarded import write_secret
from hand_written import wait_until

from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.http.auth import REALM
from storm_on_spark.cluster.security.permissions import PAGES, REST, SIMPLE, page_right
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster
from storm_on_spark.web.nimbus import NimbusPages
from storm_on_spark.web.pages.registry import PAGES as ALL_PAGES

TOKEN = "0123456789abcdef" * 2
USERS = {
    "eve": {"read"},
    "bob": {"read", "topology read"},
    "opal": {"read", "topology read", "topology change", "submit"},
    "ann": {"read", "topology read", "topology change", "submit"},
    "root": {"read", "topology read", "topology change", "submit", "see all", "cluster change"},
}


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.mark.representative
def test_everything_as_everybody(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> None:
    hashes = {user: hashlib.sha256(f"{user}:{REALM}:word-of-{user}".encode()).hexdigest() for user in USERS}
    conf = {
        "nimbus.auth.token.file": str(write_secret(tmp_path / "token", TOKEN)),
        "nimbus.auth.digest.file": str(
            write_secret(tmp_path / "users", *(f"{user}:{REALM}:{digest}" for user, digest in hashes.items()))
        ),
        "nimbus.authorizer": SIMPLE,
        "nimbus.admins": ["root"],
        "nimbus.users": ["ann", "opal"],
    }
    with SimulatedCluster(zookeeper.connect_string, tmp_path, root, **conf) as cluster:
        own = {**cluster.conf, "storm.local.dir": str(tmp_path / "n1")}
        with Nimbus(own, port=0, pages=NimbusPages) as nimbus, NimbusClient(own, seeds=[nimbus.address]) as client:
            wanted = {"topology.users": ["opal"], "topology.readonly.users": ["bob"]}
            topology = client.submit(cluster.packed("words"), "words", wanted, owner="ann")
            base = f"http://{nimbus.address}"
            with httpx.Client(trust_env=False, base_url=base) as nobody:
                for method, path in REST:
                    assert nobody.request(method, _filled("/api/v1" + path, topology)).status_code == 401, path
                for method, path in PAGES:
                    status = nobody.request(method, _filled("/ui" + path, topology)).status_code
                    assert status == 401 or "static" in path or "login" in path, (method, path, status)
            for user, rights in USERS.items():
                with httpx.Client(
                    auth=httpx.DigestAuth(user, f"word-of-{user}"), trust_env=False, base_url=base
                ) as rest:
                    for (method, path), right in REST.items():
                        status = rest.request(method, _filled("/api/v1" + path, topology)).status_code
                        assert (status == 403) is (right not in rights), (user, method, path, status)
                with httpx.Client(trust_env=False, base_url=base) as browser:
                    form = {"user": user, "secret": f"word-of-{user}"}
                    home = browser.post("/ui/login", data=form, follow_redirects=True)
                    assert home.status_code == 200, home.text
                    for page in ALL_PAGES:
                        right = page_right("GET", page.path)
                        status = browser.get(_filled("/ui" + page.path, topology)).status_code
                        assert (status == 403) is (right not in rights), (user, page.path, status)
                    form = {"csrf": csrf_of(home.text)}
                    status = browser.post(f"/ui/topology/{topology}/act/deactivate", data=form).status_code
                    assert status == (200 if "topology change" in rights else 403), (user, status)
            # Who owns what they submit is not theirs to say.
            with httpx.Client(auth=httpx.DigestAuth("opal", "word-of-opal"), trust_env=False, base_url=base) as opal:
                refused = opal.post("/api/v1/topology/unknown-1-1/kill/0")
                assert refused.status_code == 403
                assert refused.json()["error"] == "Forbidden"
            client.kill("words", 0)
            wait_until(lambda: not client.topologies(), "the end of the topology")


def _filled(path: str, topology: str) -> str:
    # Waits and bodies that make no sense: what is allowed is refused for that, and changes nothing.
    return re.sub(r"\{[^}]+\}", "x", path.replace("{id}", topology))
