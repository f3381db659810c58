"""What a manifest and a tap do, with admin and containers in this process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import eventually

from lab.streams.cluster import numbers
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.zookeeper.changes import Value
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.daemon import Admin
from storm_on_spark.xd.container.daemon import Container
from storm_on_spark.xd.modules.local_registry import LocalRegistry

pytestmark = [pytest.mark.integration]

_SHOUT = """
from storm_on_spark import BaseBasicBolt, Fields
from storm_on_spark.xd.modules import ModuleDeclaration, Option


class Shout(BaseBasicBolt):
    def __init__(self, mark):
        self.mark = mark

    def execute(self, tup, collector):
        collector.emit([tup["payload"].upper() + self.mark, tup["headers"]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("payload", "headers"))


MODULE = ModuleDeclaration("processor", "shout", "Loud payloads.", Shout, (Option("mark", "text", "!", "Behind."),))
"""


class Xd:
    """An admin and two containers, of which one is in the group `io`."""

    def __init__(self, conf: dict[str, Any], admin: Admin, plain: Container, io: Container) -> None:
        self.conf = conf
        self.plain, self.io = plain, io
        self._url = f"http://{admin.address}"

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Asks the admin."""
        return httpx.request(method, self._url + path, json=body, timeout=60)

    def deploy(self, name: str, definition: str, **properties: str) -> Any:
        """Creates a stream and deploys it; `log__count` stands for `module.log.count`."""
        self.ask("POST", "/streams/definitions", {"name": name, "definition": definition}).raise_for_status()
        given = {f"module.{key.replace('__', '.')}": value for key, value in properties.items()}
        answer = self.ask("POST", f"/streams/deployments/{name}", {"properties": given})
        return answer.raise_for_status().json()

    def containers(self, name: str) -> dict[str, str]:
        """Returns the instances of a stream, and where they are."""
        found = self.ask("GET", "/runtime/modules?size=1000").json()["content"]
        return {each["name"]: each["containerId"] for each in found if each["name"].startswith(f"{name}.")}

    def state(self, name: str) -> str:
        """Returns the state of a stream."""
        return str(self.ask("GET", f"/streams/deployments/{name}").json()["state"])


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tick=0.2) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bus")


@pytest.fixture(scope="module")
def xd(zookeeper: ZooKeeperServer, folder: Path) -> Iterator[Xd]:
    # The first server does not answer: the second one is tried.
    conf = {"zk.client.connect": f"127.0.0.1:1,{zookeeper.connect_string}"}
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("STORM_SPARK_XD_HOME", str(folder))
        admin = stack.enter_context(Admin(conf, 0))
        plain = stack.enter_context(Container(conf, bus=folder))
        io = stack.enter_context(Container(conf, ("io",), {"disk": "ssd"}, folder))
        yield Xd(conf, admin, plain, io)


def test_criteria_choose_the_container(xd: Xd, tmp_path: Path) -> None:
    text = f"rate --maxMessages=9 --messagesPerSecond=100 | file --dir={tmp_path}"
    chosen = "groups.contains('io') && attributes.disk == 'ssd'"
    assert xd.deploy("chosen", text, file__criteria=chosen)["state"] == "deployed"
    modules = xd.ask("GET", "/runtime/modules?size=100").json()["content"]
    (sink,) = (each for each in modules if each["name"] == "chosen.sink.file.1")
    assert sink["containerId"] == xd.io.container_id
    eventually(lambda: numbers(tmp_path) == list(range(9)))
    assert xd.deploy("nowhere", "time | log", log__criteria="groups.contains('moon')")["state"] == "incomplete"


def test_messages_with_the_same_key_go_to_the_same_instance(xd: Xd, tmp_path: Path) -> None:
    text = f"rate --maxMessages=40 --messagesPerSecond=400 | file --dir={tmp_path}"
    key = "payload.substring(payload.length() - 1, payload.length())"
    deployed = xd.deploy("shared", text, file__count="3", rate__partitionKeyExpression=key)
    assert len(deployed["modules"]) == 4
    eventually(lambda: numbers(tmp_path) == list(range(40)))
    of_digit: dict[str, set[str]] = {}
    for path in tmp_path.glob("*.json"):
        instance = path.name.rpartition("-")[0]
        for line in path.read_text().splitlines():
            of_digit.setdefault(json.loads(line)["payload"][-1], set()).add(instance)
    assert all(len(found) == 1 for found in of_digit.values())
    assert len(set.union(*of_digit.values())) > 1


def test_a_module_in_every_container_is_also_in_those_that_come_later(
    xd: Xd, zookeeper: ZooKeeperServer, folder: Path, tmp_path: Path
) -> None:
    text = f"rate --messagesPerSecond=50 | file --dir={tmp_path}"
    assert len(xd.deploy("everywhere", text, file__count="0")["modules"]) == 3
    eventually(lambda: numbers(tmp_path))
    with Container({"zk.client.connect": zookeeper.connect_string}, bus=folder):
        eventually(lambda: len(xd.ask("GET", "/streams/deployments/everywhere").json()["modules"]) == 4)
        before = len(numbers(tmp_path))
        eventually(lambda: len(numbers(tmp_path)) > before + 30)
    eventually(lambda: len(xd.ask("GET", "/streams/deployments/everywhere").json()["modules"]) == 3)
    # Where the number of instances has changed a message may come twice; none is missing.
    target = max(numbers(tmp_path)) + 30
    eventually(lambda: set(range(target)) <= set(numbers(tmp_path)))
    xd.ask("DELETE", "/streams/deployments/everywhere").raise_for_status()


def test_a_tap_sees_what_the_stream_sees_and_outlives_its_redeployment(xd: Xd, tmp_path: Path) -> None:
    tapped, own = tmp_path / "tapped", tmp_path / "own"
    xd.deploy("main", f"rate --messagesPerSecond=50 | file --dir={own}")
    xd.deploy("tap", f"tap:stream:main.rate > file --dir={tapped}")
    eventually(lambda: len(numbers(tapped)) > 10)
    xd.ask("DELETE", "/streams/deployments/main").raise_for_status()
    xd.ask("POST", "/streams/deployments/main", {}).raise_for_status()
    before = len(numbers(tapped))
    eventually(lambda: len(numbers(tapped)) > before + 10)
    xd.ask("DELETE", "/streams/deployments/main").raise_for_status()
    eventually(lambda: numbers(tapped)[-1] >= numbers(own)[-1])
    found = numbers(tapped)
    assert found == list(range(found[0], found[0] + len(found)))


def test_messages_tell_the_modules_that_they_passed(xd: Xd, tmp_path: Path) -> None:
    text = "rate --messagesPerSecond=100 --maxMessages=3 | transform | last:transform --expression=headers | file"
    text += f" --dir={tmp_path}"
    xd.deploy("history", text, rate__trackHistory="true", transform__trackHistory="true", transform__count="2")
    lines = eventually(lambda: len(found := _lines(tmp_path)) == 3 and found)
    where = xd.containers("history")
    for line in lines:
        history = (
            json.loads(line["payload"])["xdHistory"]
            if isinstance(line["payload"], str)
            else line["payload"]["xdHistory"]
        )
        first, second = history
        assert (first["module"], first["container"]) == ("history.source.rate.1", where["history.source.rate.1"])
        assert second["module"] in ("history.processor.transform.1", "history.processor.transform.2")
        assert second["container"] == where[second["module"]]
        assert first["timestamp"] <= second["timestamp"]


def test_a_connection_that_breaks_while_a_module_is_reported_changes_no_id(
    xd: Xd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[str] = []
    create = Tree.create_ephemeral

    def breaking(tree: Tree, value: Value, path: str) -> None:
        if path.endswith("/status") and "/broken." in path and path not in broken:
            broken.append(path)
            tree.session.client.drop_connection()
            raise UnavailableError("the connection broke")
        create(tree, value, path)

    monkeypatch.setattr(Tree, "create_ephemeral", breaking)
    before = {xd.plain.container_id, xd.io.container_id}
    deployed = xd.deploy("broken", f"rate --maxMessages=9 --messagesPerSecond=100 | file --dir={tmp_path}")
    assert len(broken) == 2
    assert deployed["state"] == "deployed"
    assert set(xd.containers("broken").values()) <= before
    assert {xd.plain.container_id, xd.io.container_id} == before
    eventually(lambda: numbers(tmp_path) == list(range(9)))


def test_an_uploaded_module_is_in_every_container(xd: Xd, folder: Path, tmp_path: Path) -> None:
    source = _SHOUT.encode()
    body = {"file": "shout.py", "source": _SHOUT, "sha256": hashlib.sha256(source).hexdigest()}
    damaged = xd.ask("POST", "/modules/files", {**body, "source": _SHOUT + "#"})
    assert (damaged.status_code, "SHA-256" in damaged.text) == (400, True)
    made = xd.ask("POST", "/modules/files", body).raise_for_status().json()
    assert (made["type"], made["name"], made["options"][0]["name"]) == ("processor", "shout", "mark")
    composed = {"name": "loud", "definition": "transform | shout"}
    assert xd.ask("POST", "/modules", composed).raise_for_status().json()["type"] == "processor"
    assert xd.ask("POST", "/modules", composed).status_code == 400
    LocalRegistry(folder / "modules").compose("quiet", "transform | filter")
    refused = xd.ask("POST", "/modules", {"name": "quiet", "definition": "transform | filter"})
    assert "is not a module of the cluster, but in the admin's folder" in refused.text
    LocalRegistry(folder / "modules").delete("processor", "quiet")
    out = tmp_path / "out"
    xd.deploy("shouting", f"trigger --payload=hi --maxMessages=1 | loud --shout.mark=?! | file --dir={out}")
    assert eventually(lambda: _lines(out))[0]["payload"] == "HI?!"
    refused = xd.ask("DELETE", "/modules/processor/loud")
    assert (refused.status_code, "used by stream shouting" in refused.text) == (409, True)
    refused = xd.ask("DELETE", "/modules/processor/shout")
    assert (refused.status_code, "processor:loud is composed of it" in refused.text) == (400, True)
    xd.ask("DELETE", "/streams/deployments/shouting").raise_for_status()
    # A container that comes now has not executed the file before.
    with Container(xd.conf, ("moved",), bus=folder) as moved:
        chosen = {"module.loud.criteria": "groups.contains('moved')"}
        xd.ask("POST", "/streams/deployments/shouting", {"properties": chosen}).raise_for_status()
        eventually(lambda: xd.state("shouting") == "deployed")
        assert xd.containers("shouting")["shouting.processor.loud.1"] == moved.container_id
    (copy,) = (folder / "modules" / "files").glob("*.py")
    copy.write_text(_SHOUT.replace("upper", "lower"))
    xd.ask("DELETE", "/streams/deployments/shouting").raise_for_status()
    with Container(xd.conf, ("late",), bus=folder):
        chosen = {"module.loud.criteria": "groups.contains('late')"}
        xd.ask("POST", "/streams/deployments/shouting", {"properties": chosen}).raise_for_status()
        eventually(lambda: xd.state("shouting") == "failed")
    xd.ask("DELETE", "/streams/definitions/shouting").raise_for_status()
    for name in ("loud", "shout"):
        assert xd.ask("DELETE", f"/modules/processor/{name}").status_code == 204
        assert xd.ask("GET", f"/modules/processor/{name}").status_code == 404


def test_a_container_tells_what_its_modules_do(xd: Xd, tmp_path: Path) -> None:
    xd.deploy("measured", f"rate --messagesPerSecond=50 | file --dir={tmp_path}")

    def told() -> list[Any]:
        found = xd.ask("GET", "/runtime/containers").json()["content"]
        rates: dict[str, Any] = {}
        for each in found:
            rates.update(each["metrics"]["rates"])
        return found if {"measured.source.rate.1", "measured.sink.file.1"} <= rates.keys() else []

    for each in eventually(told):
        metrics = each["metrics"]
        assert metrics["memory"] > 1_000_000
        if (rate := metrics["rates"].get("measured.source.rate.1")) is not None:
            assert (rate["input"], rate["output"] > 0, metrics["messagesOut"] > 0) == (0, True, True)
        if (rate := metrics["rates"].get("measured.sink.file.1")) is not None:
            assert (rate["input"] > 0, rate["output"], metrics["messagesIn"] > 0) == (True, 0, True)


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"properties": {"module.log.count": "many"}}, 400, "a number from 0 to 1000"),
        ({"properties": {"module.sink.count": "1"}}, 400, "one of time, log"),
        ({"properties": {"module.log.criteria": "groups ++"}}, 400, "module.log.criteria"),
        ({"properties": {"count": "1"}}, 400, "module.<label>.count"),
        ({"fused": True, "properties": {"module.log.count": "0"}}, 400, "a count of at least 1 of log"),
        ({"fused": True, "properties": {"module.time.partitionKeyExpression": "payload"}}, 400, "no partitions"),
        ({"properties": {"module.log.trackHistory": "maybe"}}, 400, "true or false"),
        (
            {
                "properties": {
                    "module.time.partitionKeyExpression": "payload",
                    "module.time.producer.partitionKeyExpression": "headers",
                }
            },
            400,
            "which are the same; got both",
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_changes_nothing(xd: Xd, body: object, status: int, words: str) -> None:
    xd.ask("POST", "/streams/definitions", {"name": "refused", "definition": "time | log"})
    answer = xd.ask("POST", "/streams/deployments/refused", body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert xd.ask("GET", "/streams/definitions/refused").json()["status"] == "undeployed"
