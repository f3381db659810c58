"""The pages of two admins with a real ZooKeeper and a container: what one is told, both show, also after a restart."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from page_client import Elements
from waiting import eventually

from storm_on_spark.cluster.http.auth import REALM
from storm_on_spark.cluster.security.user_token import make_secret_file
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.web.admin import StreamPages
from storm_on_spark.xd.admin.daemon import Admin
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.client import AdminClient
from storm_on_spark.xd.container.daemon import Container

pytestmark = [pytest.mark.integration]


class Streams:
    """Two admins with pages, one container, and a user who may only read."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.zookeeper = stack.enter_context(ZooKeeperServer(folder / "zookeeper", tick=0.2))
        make_secret_file(folder / "token", "t" * 32)
        lines = []
        for user in ("ada", "bob"):
            digest = hashlib.sha256(f"{user}:{REALM}:secret-of-{user}".encode()).hexdigest()
            lines.append(f"{user}:{REALM}:{digest}")
        make_secret_file(folder / "users", "\n".join(lines))
        self.conf = {
            "zk.client.connect": self.zookeeper.connect_string,
            "nimbus.auth.token.file": str(folder / "token"),
            "nimbus.auth.digest.file": str(folder / "users"),
            "nimbus.admins": ["ada"],
        }
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("STORM_SPARK_XD_HOME", str(folder))
        self.admins = [stack.enter_context(self.admin()) for _ in range(2)]
        stack.enter_context(Container(self.conf, bus=folder))
        self._stack = stack

    def admin(self) -> Admin:
        return Admin(self.conf, 0, pages=StreamPages)

    def client(self, at: int = 0) -> AdminClient:
        return AdminClient(f"http://{self.admins[at].address}", self.conf)

    def browser(self, admin: Admin, user: str = "") -> httpx.Client:
        """Returns a browser that has logged in, by a link, or with a user's password."""
        root = f"http://{admin.address}"
        found = self._stack.enter_context(httpx.Client(base_url=root, trust_env=False, timeout=60))
        if user:
            answer = found.post("/ui/login", data={"user": user, "secret": f"secret-of-{user}"})
        else:
            with AdminClient(root, self.conf) as client:
                answer = found.get(client.ui_link())
        assert answer.status_code == 303, answer.text
        return found


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[Streams]:
    with ExitStack() as stack:
        yield Streams(stack, tmp_path)


def told(browser: httpx.Client, action: str, **form: str) -> httpx.Response:
    """Returns the answer to the form of an action that is confirmed."""
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/ui/").text)
    assert csrf is not None
    return browser.post(f"/ui/stream/ticktock/act/{action}", data={"csrf": csrf[1], "sure": "yes", **form})


def test_what_one_admin_is_told_both_show(streams: Streams) -> None:
    first, second = streams.admins
    one, other = streams.browser(first), streams.browser(second, "ada")
    reader, nobody = streams.browser(second, "bob"), httpx.Client(base_url=f"http://{first.address}", trust_env=False)
    with nobody:
        assert nobody.get("/ui/").status_code == 401
        assert nobody.post("/ui-login").status_code == 401
        assert nobody.get("/streams/definitions").status_code == 401
    with streams.client() as client:
        client.ask("create_stream", schemas.CreateDefinition(name="ticktock", definition="time | log"))
    eventually(lambda: one.get("/ui/stream/ticktock").status_code == 200)
    # Deployed by one, seen and undeployed by the other.
    assert "Stream ticktock is deployed." in told(one, "deploy", properties="module.log.count=2").text
    page = eventually(lambda: "3 <small>of 3</small>" in (found := other.get("/ui/stream/ticktock").text) and found)
    assert "module.log.count" in page
    assert Elements(page).bad == []
    assert told(reader, "destroy").status_code == 403
    assert reader.get("/ui/stream/ticktock").status_code == 200
    assert told(other, "deploy").status_code == 409
    assert "Stream ticktock is undeployed." in told(other, "undeploy").text
    eventually(lambda: "It is not deployed." in one.get("/ui/stream/ticktock").text)
    assert "Stream ticktock is destroyed." in told(one, "destroy").text
    eventually(lambda: other.get("/ui/stream/ticktock").status_code == 404)
    # A later admin has the same list, and it says who it was.
    with streams.admin() as third:
        page = streams.browser(third).get("/ui/changes").text
    rows = re.findall(r'<tr><td class="whole">[^<]+</td><td class="wrap">([^<]+)</td><td>([^<]+)</td>', page)
    assert [what for _, what in rows] == ["destroy stream", "undeploy stream", "deploy stream", "create stream"]
    assert rows[1][0] == "ada"
    assert "" not in {who for who, _ in rows}


def test_the_pages_say_since_when_zookeeper_is_away(streams: Streams) -> None:
    browser = streams.browser(streams.admins[0])
    with streams.client() as client:
        client.ask("create_stream", schemas.CreateDefinition(name="ticktock", definition="time | log", deploy=True))
    eventually(lambda: "2 of 2" in browser.get("/ui/").text)
    streams.zookeeper.close()
    page = eventually(lambda: "be reached since" in (found := browser.get("/ui/").text) and found)
    assert "ticktock" in page
    assert browser.get("/ui/changes").status_code == 200
    assert told(browser, "undeploy").status_code == 503


def test_an_admin_ends_while_somebody_looks(streams: Streams) -> None:
    with streams.admin() as admin:
        browser = streams.browser(admin)
        with browser.stream("GET", "/ui/", headers={"Accept": "text/event-stream"}) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data:")
            ends = threading.Thread(target=admin.close)
            ends.start()
            for _ in lines:
                pass
            ends.join()
