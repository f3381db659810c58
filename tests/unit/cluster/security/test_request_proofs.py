"""Requests prove who sends them, and whoever receives or hears them can't ask in their place."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from answering import serving

from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.auth import Authentication, StaleNonceError
from storm_on_spark.cluster.security.proofs import TokenAuth, parameters
from storm_on_spark.cluster.security.tokens import Tokens

TOKEN, OTHER = "0123456789abcdef-right", "0123456789abcdef-wrong"


def client(*tokens: str) -> httpx.Client:
    auth = TokenAuth(Tokens(tokens)) if tokens else None
    return httpx.Client(auth=auth, trust_env=False, timeout=10)


class Rogue(BaseHTTPRequestHandler):
    """A server of somebody else's that keeps what it is sent."""

    heard: list[str]
    challenge: str

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.heard.append(f"{self.requestline}\n{self.headers}\n{self.rfile.read(length)!r}")
        self.send_response(401)
        self.send_header("WWW-Authenticate", f'Storm-HMAC challenge="{self.challenge}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def rogue(challenge: str) -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (Rogue,), {"heard": [], "challenge": challenge})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api/v1", handler.heard  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_requests_of_every_kind() -> None:
    with serving(Authentication(TOKEN)) as (url, done), client(TOKEN) as http:
        assert http.get(f"{url}/a?b=c&d=%20e").status_code == 200
        assert http.post(f"{url}/b", json={"x": 1}).status_code == 200
        assert http.post(f"{url}/c").status_code == 200
        assert http.put(f"{url}/d", content=iter([b"x" * 100_000, b"y"])).status_code == 200
        with http.stream("GET", f"{url}/e") as answer:
            assert answer.status_code == 200
        assert [(method, path) for method, path, _ in done] == [
            ("GET", "/api/v1/a"),
            ("POST", "/api/v1/b"),
            ("POST", "/api/v1/c"),
            ("PUT", "/api/v1/d"),
            ("GET", "/api/v1/e"),
        ]
        assert len(done[3][2]) == 100_001


@pytest.mark.parametrize(
    ("server", "ours", "passes"),
    [
        ((TOKEN,), (TOKEN,), True),
        ((TOKEN, OTHER), (OTHER,), True),
        ((TOKEN,), (OTHER, TOKEN), False),
        ((TOKEN,), (OTHER,), False),
        ((TOKEN,), (), False),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_who_may_ask(server: tuple[str, ...], ours: tuple[str, ...], passes: bool, method: str) -> None:
    with serving(Authentication(Tokens(server))) as (url, done), client(*ours) as http:
        content = iter([b"x"]) if method == "PUT" else None
        answer = http.request(method, f"{url}/a", content=content)
        assert answer.status_code == (200 if passes else 401)
        assert len(done) == passes


def test_a_server_that_asks_for_nothing_is_sent_nothing() -> None:
    with serving(Authentication()) as (url, done), client(TOKEN) as http:
        answer = http.get(f"{url}/a")
        assert answer.status_code == 200
        assert "Authorization" not in answer.request.headers
        assert http.put(f"{url}/a", content=iter([b"x"])).status_code == 200
        assert [path for _, path, _ in done if "challenge" not in path] == ["/api/v1/a", "/api/v1/a"]


def test_a_stranger_learns_nothing_that_could_be_used() -> None:
    authentication = Authentication(TOKEN)
    with serving(authentication) as (url, done), rogue("1.0123456789abcdef.ff") as (strange, heard):
        with client(TOKEN) as http:
            for method in ("GET", "POST"):
                assert http.request(method, f"{strange}/a", headers={"X": "y"}).status_code == 401
        assert len(heard) >= 3
        assert not any(TOKEN in text or "bearer" in text.lower() for text in heard)
        # What was heard, sent to the cluster: the challenge is not one of its own.
        for text in heard:
            header = next((line for line in text.splitlines() if line.lower().startswith("authorization: ")), None)
            if header is not None:
                answer = httpx.get(f"{url}/a", headers={"Authorization": header.split(": ", 1)[1]}, trust_env=False)
                assert answer.status_code == 401
        assert done == []


def signed(authentication: Authentication, method: str, target: str, body: bytes = b"") -> str:
    """Returns the header of a request to a server."""
    request = httpx.Request(method, f"http://nimbus{target}", content=body)
    flow = TokenAuth(Tokens((TOKEN,))).auth_flow(request)
    next(flow)
    challenge = next(each for each in authentication.challenges() if each.startswith("Storm-HMAC"))
    asked = httpx.Response(401, headers={"WWW-Authenticate": challenge}, request=request)
    return str(flow.send(asked).headers["Authorization"])


def test_a_proof_is_for_one_request_once() -> None:
    authentication = Authentication(TOKEN)
    header = signed(authentication, "POST", "/a?b=c", b"body")

    def check(method: str = "POST", target: str = "/a?b=c", value: str = header) -> str:
        return authentication.check({"authorization": value}, method, target)

    wrong = [("GET", "/a?b=c"), ("POST", "/a?b=d"), ("POST", "/a"), ("POST", "/b")]
    for method, target in wrong:
        with pytest.raises(AuthenticationError, match="for another request"):
            check(method, target)
    for name, value in parameters(header.partition(" ")[2]).items():
        for other in ("", value[:-1], value[:-1] + ("0" if value[-1] != "0" else "1"), value + "0"):
            with pytest.raises(AuthenticationError):
                check(value=header.replace(f'"{value}"' if name != "nc" else f"nc={value}", f'"{other}"'))
    assert check() == "token"
    with pytest.raises(StaleNonceError, match="was used before"):
        check()
    with pytest.raises(AuthenticationError):
        Authentication(OTHER).check({"authorization": signed(authentication, "GET", "/")}, "GET", "/")
    with pytest.raises(StaleNonceError):
        # Another Nimbus of the same cluster did not ask this.
        Authentication(TOKEN).check({"authorization": signed(authentication, "GET", "/")}, "GET", "/")


def test_a_body_on_its_way_can_not_be_changed() -> None:
    authentication = Authentication(TOKEN)
    with serving(authentication) as (url, done):
        for body, status in ((b'{"name":"evil"}', 401), (b"", 401), (b'{"name":"mine"}', 200)):
            header = signed(authentication, "POST", "/api/v1/topology/submit", b'{"name":"mine"}')
            answer = httpx.post(
                f"{url}/topology/submit", headers={"Authorization": header}, content=body, trust_env=False
            )
            assert answer.status_code == status
        assert [body for _, _, body in done] == [b'{"name":"mine"}']
        # And none but an upload comes without.
        for method, status in (("POST", 401), ("GET", 401), ("PUT", 200)):
            with client(TOKEN) as http:
                assert http.request(method, f"{url}/x", content=iter([b"x"])).status_code == status


def test_challenges_get_old_and_the_client_takes_another() -> None:
    now = [1000.0]
    authentication = Authentication(TOKEN, now=lambda: now[0])
    with serving(authentication) as (url, done), client(TOKEN) as http:
        for _ in range(3):
            assert http.get(f"{url}/a").status_code == 200
            assert http.put(f"{url}/a", content=iter([b"x"])).status_code == 200
            now[0] += 400
        assert len(done) == 6


def test_many_threads_share_a_client() -> None:
    with serving(Authentication(TOKEN)) as (url, done), client(TOKEN) as http:
        answers: list[int] = []
        ask = lambda: answers.extend(http.get(f"{url}/a").status_code for _ in range(20))  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 120
        assert len(done) == 120
