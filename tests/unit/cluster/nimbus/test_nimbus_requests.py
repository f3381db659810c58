from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from storm_on_spark.api.errors import AlreadyAliveError, ConfigError, NotAliveError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.errors import (
    AuthenticationError,
    ClusterError,
    CodeError,
    ConflictError,
    LimitError,
    TransitionError,
    UnavailableError,
)
from storm_on_spark.cluster.http.server import HttpServer, listen

RETRY = {"storm.nimbus.retry.times": 3, "storm.nimbus.retry.interval.millis": 1000}
DOWN = None
DONE = (200, {"status": "success"})
Answer = tuple[int, dict[str, Any] | bytes] | None


def error(status: int, title: str, leader: str | None = None) -> Answer:
    return status, {"error": title, "errorMessage": f"says {title}", "leader": leader}


class Script:
    """Servers that answer as they are told: a list each, one after the other, the last again and again."""

    def __init__(self, **answers: list[Answer]) -> None:
        self._answers = {name: list(found) for name, found in answers.items()}
        self.asked: list[tuple[str, str, str]] = []
        self.bodies: list[Any] = []
        self.slept: list[float] = []
        self._stack = contextlib.ExitStack()
        self.addresses: dict[str, str] = {}
        for name in answers:
            listener = listen("127.0.0.1", 0)
            self.addresses[name] = f"127.0.0.1:{listener.getsockname()[1]}"
            routes = [Route("/api/v1/{path:path}", self._handler(name), methods=["GET", "POST"])]
            self._stack.enter_context(HttpServer(Starlette(routes=routes), listener))

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _handler(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            path = "/" + request.path_params["path"]
            self.asked.append((name, request.method, path))
            if path == "/topology/summary":
                return JSONResponse({"topologies": [{"id": "words-1-1", "name": "words"}]})
            if request.method == "POST":
                self.bodies.append(json.loads(await request.body() or b"null"))
            left = self._answers[name]
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer is DOWN:
                return Response(status_code=503)
            status, body = answer
            if isinstance(body, bytes):
                return Response(body, status)
            leader = body.get("leader")
            return JSONResponse({**body, "leader": self.addresses.get(leader or "")}, status)

        return handle

    def client(self, *seeds: str, **conf: Any) -> NimbusClient:
        return NimbusClient({**RETRY, **conf}, seeds=[self.addresses[seed] for seed in seeds], sleep=self.slept.append)


def test_it_follows_the_leader_and_remembers_it() -> None:
    with Script(a=[error(421, "Not Leader", "b")], b=[DONE]) as script, script.client("a") as client:
        client.activate("words")
        client.deactivate("words")
    assert [(host, path) for host, method, path in script.asked if method == "POST"] == [
        ("a", "/topology/words-1-1/activate"),
        ("b", "/topology/words-1-1/activate"),
        ("b", "/topology/words-1-1/deactivate"),
    ]
    assert script.slept == []


def test_it_samples_as_storms_interface_has_it() -> None:
    with Script(a=[DONE]) as script, script.client("a") as client:
        client.sample("words", "", 12.5)
        client.sample("words", "a/b c", 0.0)
    assert [path for _, method, path in script.asked if method == "POST"] == [
        "/topology/words-1-1/debug/enable/12.500000",
        "/topology/words-1-1/component/a/b c/debug/disable/0.000000",
    ]


def test_it_asks_the_next_seed_and_then_waits() -> None:
    late = [DOWN, error(503, "Unavailable"), (200, {"topologies": 0})]
    with Script(a=[DOWN], b=late) as script, script.client("a", "b") as client:
        assert client.cluster()["topologies"] == 0
    assert [host for host, *_ in script.asked] == ["a", "b"] * 3
    assert len(script.slept) == 2
    assert 0.5 <= script.slept[0] <= 1 <= script.slept[1] <= 2


def test_it_gives_up_at_last_and_says_what_everybody_said() -> None:
    closed = listen("127.0.0.1", 0)
    nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    with Script(b=[error(503, "Unavailable")]) as script:
        seeds, slept = [nobody, script.addresses["b"]], script.slept
        expected = rf"^no Nimbus could answer: {nobody}: ConnectError: .*; {seeds[1]}: says Unavailable$"
        with (
            NimbusClient(RETRY, seeds=seeds, sleep=slept.append) as client,
            pytest.raises(UnavailableError, match=expected),
        ):
            client.cluster()
    assert len(slept) == 3


def test_leaders_that_name_each_other_are_no_loop() -> None:
    with (
        Script(a=[error(421, "Not Leader", "b")], b=[error(421, "Not Leader", "a")]) as script,
        script.client("a", **{"storm.nimbus.retry.times": 0}) as client,
        pytest.raises(UnavailableError, match="the leader could not be found within 5 steps"),
    ):
        client.activate("words")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(404, "Not Alive"), NotAliveError),
        (error(409, "Already Alive"), AlreadyAliveError),
        (error(409, "Conflict"), TransitionError),
        (error(409, "Try Again"), ConflictError),
        (error(413, "Too Much"), LimitError),
        (error(400, "Bad Code"), CodeError),
        (error(400, "Bad Configuration"), ConfigError),
        (error(401, "Unauthorized"), AuthenticationError),
        (error(500, "Internal Server Error"), ClusterError),
        ((500, b"<html>"), ClusterError),
        ((200, b"<html>"), ClusterError),
        ((200, b"[]"), ClusterError),
    ],
)
def test_errors_come_through_as_what_they_are(answer: Answer, kind: type[Exception]) -> None:
    with Script(a=[answer]) as script, script.client("a") as client, pytest.raises(kind):
        client.cluster()
    assert script.slept == [], "asking again would not help"


def test_what_a_rebalance_sends() -> None:
    with Script(a=[DONE]) as script, script.client("a") as client:
        client.rebalance("words", 1.5, workers=2, executors={"count": 1}, conf={"my.key": None})
        client.rebalance("words-1-1")
        client.rebalance("words", from_scratch=True)
    assert [path for _, method, path in script.asked if method == "POST"] == [
        "/topology/words-1-1/rebalance/1.500",
        "/topology/words-1-1/rebalance/default",
        "/topology/words-1-1/rebalance/default",
    ]
    assert script.bodies == [
        {"rebalanceOptions": {"numWorkers": 2, "executors": {"count": 1}}, "conf": {"my.key": None}},
        {"rebalanceOptions": {"numWorkers": None, "executors": {}}, "conf": {}},
        {"rebalanceOptions": {"numWorkers": None, "executors": {}}, "conf": {}, "fromScratch": True},
    ]
