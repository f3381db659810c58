"""Definitions of streams in a real ZooKeeper, through the REST interface of an admin on a real socket."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from storm_on_spark.cluster.errors import ExistsError, FormatError, NotFoundError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.zookeeper import ZooKeeperServer, ZooKeeperSession, ZooKeeperSettings
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.admin.changes import KEPT, ZooKeeperChanges
from storm_on_spark.xd.admin.definitions import ZooKeeperDefinitions
from storm_on_spark.xd.admin.rest.app import Parts, make_app
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.tree.mirror import Mirror
from storm_on_spark.xd.tree.nodes import Definition
from storm_on_spark.xd.tree.session import xd_session
from tests.unit.xd.rest_server import MemoryDefinitions, MemoryJobRuntime, MemoryRuntime


@pytest.fixture(scope="module")
def session() -> Iterator[ZooKeeperSession]:
    with (
        ZooKeeperServer() as server,
        xd_session(ZooKeeperSettings(hosts=server.connect_string, root="/xd")) as session,
    ):
        session.client.ensure_path("/xd/streams")
        session.client.ensure_path("/xd/changes")
        yield session


@pytest.fixture
def definitions(session: ZooKeeperSession) -> Iterator[ZooKeeperDefinitions]:
    found = ZooKeeperDefinitions(Tree(session))
    yield found
    for name in session.client.get_children("/xd/streams"):
        session.client.delete(f"/xd/streams/{name}")


def test_a_definition_is_that_of_spring_xd(session: ZooKeeperSession, definitions: ZooKeeperDefinitions) -> None:
    definitions.create("ticktock", "time | log")
    value, stat = session.client.get("/xd/streams/ticktock")
    assert value == b'{"definition":"time | log"}'
    assert (stat.dataLength, stat.ephemeralOwner) == (27, 0)
    assert definitions.get("ticktock") == "time | log"
    assert definitions.all() == {"ticktock": "time | log"}
    definitions.remove("ticktock")
    assert definitions.all() == {}


def test_a_name_is_taken_once(definitions: ZooKeeperDefinitions) -> None:
    definitions.create("ticktock", "time | log")
    with pytest.raises(ExistsError, match="already a stream named 'ticktock'"):
        definitions.create("ticktock", "http | log")
    with pytest.raises(NotFoundError, match="no stream named 'other'"):
        definitions.get("other")
    with pytest.raises(NotFoundError, match="no stream named 'other'"):
        definitions.remove("other")
    assert definitions.get("ticktock") == "time | log"


def test_a_node_that_something_else_wrote_hides_no_other(
    session: ZooKeeperSession, definitions: ZooKeeperDefinitions
) -> None:
    session.client.create("/xd/streams/foreign", b"\xff")
    definitions.create("ticktock", "time | log")
    assert definitions.all() == {"ticktock": "time | log"}
    with pytest.raises(FormatError, match="no definition of stream 'foreign'"):
        definitions.get("foreign")


def test_of_many_who_create_one_stream_one_succeeds(
    session: ZooKeeperSession, definitions: ZooKeeperDefinitions
) -> None:
    jobs = MemoryDefinitions("job")
    runtimes = MemoryRuntime(MemoryDefinitions()), MemoryJobRuntime(jobs)
    parts = Parts(definitions, runtimes[0], jobs, runtimes[1], LocalRegistry(), ZooKeeperChanges(Tree(session)))
    app = make_app(parts, Authentication())
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/streams/definitions"
    texts = [f"time --fixedDelay={number} | log" for number in range(1, 17)]

    def create(text: str) -> int:
        return httpx.post(url, json={"name": "ticktock", "definition": text}, trust_env=False).status_code

    with HttpServer(app, listener), ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(create, texts))
        shown = httpx.get(url, trust_env=False).json()["content"]
    assert sorted(statuses) == [201] + [409] * 15
    winner = texts[statuses.index(201)]
    assert shown == [{"name": "ticktock", "definition": winner, "status": "undeployed"}]
    assert [each.what for each in parts.changes.all() if each.name == "ticktock"] == ["create stream"]


def test_the_last_changes_of_many_writers_are_kept(session: ZooKeeperSession) -> None:
    changes = ZooKeeperChanges(Tree(session), now=lambda: 7.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: changes.note("ada", "deploy stream", f"s{number}"), range(KEPT + 40)))
    changes.note("b" * 300, "x" * 900, "y" * 900)
    found = changes.all()
    assert len(found) == KEPT
    assert (found[0].time, len(found[0].who), len(found[0].what), len(found[0].name)) == (7.0, 200, 500, 300)
    assert {each.who for each in found[1:]} == {"ada"}
    assert len({each.name for each in found}) == KEPT, "each is there once"


def test_a_node_is_shown_when_its_value_is_there(
    session: ZooKeeperSession, definitions: ZooKeeperDefinitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A leader that saw a request before its value took it for one that can't be read, and deleted it.
    client, changed, held = session.client, threading.Event(), queue.Queue[Any]()
    get_async = client.get_async

    def slow(path: str, *args: Any, **more: Any) -> Any:
        answer = get_async(path, *args, **more)
        if path != "/xd/streams/late":
            return answer
        later = client.handler.async_result()
        answer.rawlink(lambda found: held.put((later, found)))
        return later

    monkeypatch.setattr(client, "get_async", slow)
    with Mirror(Tree(session), "/xd/streams", changed.set) as mirror:
        definitions.create("late", "time | log")
        later, found = held.get(timeout=30)
        assert mirror.children("/xd/streams") == []
        changed.clear()
        later.set(found.get())
        assert changed.wait(30)
        assert mirror.children("/xd/streams") == ["late"]
        assert mirror.value("/xd/streams/late", Definition) == Definition(definition="time | log")
