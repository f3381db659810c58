"""Modules that reach files, HTTP, databases and scripts, each by itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.sink import SinkContext
from storm_on_spark.connectors.kafka import KafkaRecord
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple
from storm_on_spark.xd.expressions import parse_expression
from storm_on_spark.xd.modules import ModuleType, OptionError, find_module
from storm_on_spark.xd.modules.outside.kafka import KeyMapper

FIELDS = ["payload", "headers"]


def made(type: ModuleType, name: str, /, **options: str) -> Any:  # noqa: A002
    return find_module(type, name).make(options, "s")


def message(payload: Any) -> Any:
    return make_tuple([payload, {"h": 1}], FIELDS)


def payloads(tester: Any, calls: int = 5) -> list[Any]:
    return [emission.values[0] for emission in tester.next_tuple(calls=calls)]


# A message that fails


def test_a_message_that_fails_comes_again_later_each_time() -> None:
    source = made("source", "trigger", maxMessages="1", payload="a")
    now = [0.0]
    source.now = lambda: now[0]
    tester = SpoutTester(source)
    payloads(tester)
    waited = []
    for _ in range(6):
        tester.fail(1)
        start = now[0]
        while not payloads(tester):
            now[0] += 0.5
        waited.append(now[0] - start)
    assert waited == [1, 2, 4, 8, 10, 10]


def test_a_message_that_failed_too_often_becomes_a_dead_letter() -> None:
    source = made("source", "trigger", maxMessages="1", payload="a")
    now = iter(range(0, 10_000, 20))
    source.now = lambda: next(now)
    source.give_up_after(2)
    tester = SpoutTester(source)
    streams = []
    for _ in range(3):
        streams += [emission.stream for emission in tester.next_tuple(calls=3)]
        tester.fail(1)
    assert streams == ["default", "default", "dead_letters"]
    assert [emission.stream for emission in tester.next_tuple(calls=3)] == ["dead_letters"], "until it is acked"
    tester.ack(1)
    assert tester.spout.exhausted()


def test_options_are_those_of_the_definition_after_a_restart() -> None:
    tester: Any = SpoutTester(made("source", "trigger", maxMessages="1", payload="a"))
    assert payloads(tester) == ["a"]
    saved = tester.spout.state_holder.__getstate__()
    again: Any = SpoutTester(made("source", "trigger", maxMessages="2", payload="b", fixedDelay="0.001"))
    again.spout.state_holder.__setstate__(saved)
    again.spout.now = lambda: time.time() + 1
    assert (payloads(again), again.spout.exhausted()) == (["b"], True)
    assert not {"payload", "max_messages", "_collector"} & saved.keys()


# tail


def tail(file: Path, **options: str) -> tuple[Any, list[float]]:
    source = made("source", "tail", name=str(file), **options)
    now = [0.0]
    tester: Any = SpoutTester(source)
    tester.spout.now = lambda: now[0]
    return tester, now


def looked(tester: Any, now: list[float]) -> list[Any]:
    now[0] += 1
    return payloads(tester)


def test_tail_emits_what_is_appended(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("old\n")
    tester, now = tail(file)
    assert looked(tester, now) == []
    with file.open("a") as opened:
        opened.write("one\ntwo\nhal")
    assert payloads(tester) == [], "it looks once a second"
    assert looked(tester, now) == ["one", "two"]
    with file.open("a") as opened:
        opened.write("f\n")
    assert looked(tester, now) == ["half"]
    tester.close()


def test_tail_goes_on_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one\n")
    source = made("source", "tail", name=str(file), fromStart="true", delay="0.001")
    tester: Any = SpoutTester(source)
    assert payloads(tester) == ["one"]
    with file.open("a") as opened:
        opened.write("two\n")
    tester.spout.close()
    tester.restart()
    tester.spout.now = iter(range(10**9, 10**9 + 100)).__next__
    assert payloads(tester) == ["two"]
    tester.close()


def test_tail_follows_a_file_that_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "log"
    tester, now = tail(file)
    assert looked(tester, now) == []
    file.write_text("one\n")
    assert looked(tester, now) == ["one"], "a file that appears later is new"
    with file.open("a") as opened:
        opened.write("last\nrest")
    file.rename(tmp_path / "log.1")
    file.write_text("new\n")
    assert looked(tester, now) == ["last", "rest", "new"]
    file.write_text("a\n")
    assert looked(tester, now) == ["a"], "it became shorter"
    tester.close()


# http


class Poster:
    """Posts on threads, and drives the source meanwhile."""

    def __init__(self, **options: str) -> None:
        self.tester: Any = SpoutTester(made("source", "http", port="0", **options))
        self.port = int(self.tester.spout.address.rpartition(":")[2])

    def send(self, body: bytes = b"", method: str = "POST", path: str = "/", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def drive(self, until: Callable[[], bool], act: Callable[[int], None] | None = None) -> list[Any]:
        found: list[Any] = []
        deadline = time.monotonic() + PATIENCE_SECS
        while not until():
            assert time.monotonic() < deadline
            for emission in self.tester.next_tuple():
                found.append(emission.values)
                (act or self.tester.ack)(emission.message_id)
            time.sleep(0.001)
        return found


@pytest.fixture
def poster() -> Iterator[Callable[..., Poster]]:
    opened: list[Poster] = []

    def make(**options: str) -> Poster:
        opened.append(Poster(**options))
        return opened[-1]

    yield make
    for each in opened:
        each.tester.close()


def test_http_answers_when_the_messages_are_processed(poster: Callable[..., Poster]) -> None:
    posts = poster()
    answers: list[tuple[int, str]] = []
    lines = threading.Thread(
        target=lambda: answers.append(posts.send(b"one\n\ntwo\n", Content_Type="application/x-ndjson"))
    )
    lines.start()
    emitted: list[int] = []
    found = posts.drive(lambda: len(emitted) == 2, emitted.append)
    assert (found, answers) == (
        [(text, {"contentType": "application/x-ndjson"}) for text in ("one", "two")],
        [],
    ), "no answer before the messages are acked"
    for number in emitted:
        posts.tester.ack(number)
    lines.join(30)
    assert answers == [(200, "")]


def test_http_answers_at_once(poster: Callable[..., Poster]) -> None:
    posts = poster(answer="received")
    assert posts.send("é".encode()) == (200, "")
    assert payloads(posts.tester) == ["é"]


def test_http_tells_a_sender_that_waited_too_long(poster: Callable[..., Poster]) -> None:
    status, text = poster(timeout="0.01").send(b"a")
    assert (status, text) == (504, "not processed within 0.01 s; it may still be\n")


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        ({"method": "GET"}, 405, "expected POST"),
        ({"body": b"\xff"}, 400, "expected UTF-8, got other bytes at 0"),
        ({"body": b"a" * 11}, 413, "expected at most 10 bytes, got 11"),
        ({"path": "/other"}, 404, "expected the path /in"),
        ({"Origin": "http://example.org"}, 403, "not from a web page"),
        ({"Host": "example.org"}, 403, "not from a web page"),
        ({"Transfer_Encoding": "chunked"}, 411, "expected a Content-Length"),
        ({"Authorization": "Bearer wrong"}, 401, "expected Authorization"),
    ],
)
def test_http_refuses(
    poster: Callable[..., Poster], tmp_path: Path, request_: dict[str, Any], status: int, text: str
) -> None:
    token = tmp_path / "token"
    token.write_text("a" * 32)
    token.chmod(0o600)
    posts = poster(maxBytes="10", path="/in", tokenFile=str(token))
    given = {"path": "/in", "Authorization": "Bearer " + "a" * 32, **request_}
    found = posts.send(**given)
    assert found[0] == status
    assert text in found[1]
    assert payloads(posts.tester) == []


def test_http_tells_senders_that_the_stream_ends(poster: Callable[..., Poster]) -> None:
    posts = poster()
    answers: list[tuple[int, str]] = []
    sender = threading.Thread(target=lambda: answers.append(posts.send(b"a")))
    sender.start()
    posts.drive(lambda: len(posts.tester.collector.emitted) == 1, lambda number: None)
    posts.tester.close()
    sender.join(30)
    assert answers == [(503, "the stream has ended; post it again later\n")]


def test_http_answers_beside_slow_connections(poster: Callable[..., Poster]) -> None:
    posts = poster(answer="received")
    began = [b"POST / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", b""]
    with contextlib.ExitStack() as stack:
        for number in range(600):  # more than it bears of one address
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", posts.port), 30))
            connection.sendall(began[number % 3])
            time.sleep(0.003)  # a short queue of the listener's would drop some, and they would close nothing
        assert [posts.send(b"a") for _ in range(5)] == [(200, "")] * 5
    assert payloads(posts.tester, 9) == ["a"] * 5


def test_http_ends_beside_slow_connections(poster: Callable[..., Poster]) -> None:
    posts = poster()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    with contextlib.ExitStack() as stack:
        connect = (socket.create_connection(("127.0.0.1", posts.port), 30) for _ in range(50))
        made = [stack.enter_context(connection) for connection in connect]
        for number, connection in enumerate(made):
            connection.sendall(head[: 20 + number * 5])
        ended = threading.Thread(target=posts.tester.close, daemon=True)
        ended.start()
        ended.join(PATIENCE_SECS)
        assert not ended.is_alive()
        for connection in made:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_http_tells_of_a_body_or_a_head_that_is_much_too_long(poster: Callable[..., Poster]) -> None:
    posts = poster()
    assert posts.send(bytes(20_000_000)) == (413, "expected at most 1000000 bytes, got 20000000\n")
    assert posts.send(b"a", X="a" * 1_000_000)[0] == 431


def test_http_waits_for_no_body_for_long(poster: Callable[..., Poster], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_on_spark.xd.modules.outside.http_server.BODY_SECS", 0.01)
    with socket.create_connection(("127.0.0.1", poster().port), 30) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nno")
        assert connection.recv(12) == b"HTTP/1.1 408"


def test_http_takes_only_so_much_that_waits(poster: Callable[..., Poster], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storm_on_spark.xd.modules.outside.http_server._MOST_WAITING_BYTES", 1000)
    posts = poster(answer="received")
    assert posts.send(b"a" * 2000) == (200, ""), "a request alone always has room"
    assert posts.send(b"a")[0] == 503
    assert payloads(posts.tester) == ["a" * 2000]
    assert [posts.send(b"a")[0] for _ in range(12)] == [200] * 9 + [503] * 3, "each takes more than its text"


def test_http_says_which_library_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "storm_on_spark.xd.modules.outside.http_server", None)
    with pytest.raises(
        SetupError, match=re.escape("the source http needs starlette, uvicorn, which are not installed")
    ):
        SpoutTester(made("source", "http", port="0"))


def test_http_says_why_it_can_not_listen(poster: Callable[..., Poster]) -> None:
    port = poster().port
    with pytest.raises(SetupError, match=f"http can't listen on 127.0.0.1:{port}: Address already in use"):
        SpoutTester(made("source", "http", port=str(port)))
    with pytest.raises(OptionError, match=r"Expected 127\.0\.0\.1, or --tokenFile too"):
        made("source", "http", host="0.0.0.0")


class Echo(BaseHTTPRequestHandler):
    """Answers with what it got; refuses `no`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500 if body == b"no" else 302 if body == b"elsewhere" else 200)
        self.send_header("Content-Length", str(len(body) + 1))
        self.end_headers()
        self.wfile.write(b"<" + body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def echo() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_http_client_and_sink_send_each_message(echo: str) -> None:
    with BoltTester(made("processor", "http-client", url=echo, maxBytes="20")) as client:
        client.execute(message("a"), message({"b": 1}), message("no"), message("elsewhere"), message("c" * 30))
        found: Any = client.collector
        assert [values[0] for values in found.values()] == ["<a", '<{"b": 1}']
        assert [tup["payload"] for tup in found.failed] == ["no", "elsewhere", "c" * 30]
        errors = [str(error) for error in found.errors]
    assert "expected an answer, got 500" in errors[0]
    assert "expected no redirection, got 302" in errors[1]
    assert "expected at most 20 bytes, got more" in errors[2]
    with BoltTester(made("sink", "http", url=echo)) as sink:
        sink.execute(message("a"), message("no"))
        assert (len(sink.collector.acked), len(sink.collector.failed)) == (1, 1)


def test_http_client_fails_a_message_without_a_server() -> None:
    with BoltTester(made("processor", "http-client", url="http://127.0.0.1:1/")) as client:
        client.execute(message("a"))
        assert len(client.collector.failed) == 1


@pytest.mark.parametrize(
    "url", ["", "ftp://a/", "http:///a", "http://a b/", "http://u:p@a/", "http://a:99999/", "a" * 5000]
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(OptionError, match="Expected a URL"):
        made("sink", "http", url=url)


# script


def script(folder: Path, text: str, **options: str) -> Any:
    (folder / "s.py").write_text(text)
    return made("processor", "script", location=str(folder / "s.py"), **options)


def test_script_goes_along_with_the_stream(tmp_path: Path) -> None:
    bolt = script(
        tmp_path, "import json\ndef process(payload, headers):\n    return json.loads(payload).get('a', headers['h'])\n"
    )
    (tmp_path / "s.py").unlink()
    with BoltTester(bolt) as tester:
        tester.execute(message('{"a": [2]}'), message("{}"), message('{"a": null}'))
        found: Any = tester.collector
        assert [values[0] for values in found.values()] == [[2], 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def process(", "s.py, line 1: expected Python"),
        ("\0", "expected Python"),
        ("x = 1", r"expected a function process\(payload, headers\)"),
        ("#" * 1_000_001, "expected at most 1000000 bytes"),
    ],
)
def test_what_is_no_script(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        script(tmp_path, text)


def test_a_script_has_the_checksum_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"Expected .*s.py to have the SHA-256 0{64}, got [0-9a-f]{64}") as caught:
        script(tmp_path, "def process(payload, headers): ...", sha256="0" * 64)
    assert caught.value.option == "sha256"
    with pytest.raises(OptionError, match="can't be read: No such file"):
        made("processor", "script", location="gone.py")


def test_what_a_script_returns_is_a_payload(tmp_path: Path) -> None:
    with (
        BoltTester(script(tmp_path, "def process(payload, headers): return object()")) as tester,
        pytest.raises(TypeError, match=r"s.py: expected a text, .* of process\(\), got <object"),
    ):
        tester.execute(message("a"))


# jdbc


def table(path: Path, sql: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    return connection


def test_jdbc_inserts_rows(tmp_path: Path) -> None:
    database = table(tmp_path / "d", "CREATE TABLE orders (id, items TEXT)")
    sink = made("sink", "jdbc", database=str(tmp_path / "d"), table="orders", columns="id, items")
    given = [{"id": 1, "items": ["a"]}, {"id": "one", "items": "x'); DROP TABLE orders; --"}]
    with BoltTester(sink) as tester:
        tester.execute(*map(message, given))
        assert len(tester.collector.acked) == 2
        written = tester.bolt.take_written()
        with pytest.raises(ValueError, match="expected a map with id, items, got 'a'"):
            tester.execute(message("a"))
    sink.open_sink(SinkContext(None, "s"))
    # Again, as after a crash.
    for _ in range(2):
        sink.write([written], SinkContext(None, "s", 1))
    rows = database.execute("SELECT * FROM orders ORDER BY id").fetchall()
    database.close()
    assert rows == [(1, '["a"]'), ("one", "x'); DROP TABLE orders; --")]


def test_jdbc_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    for given, text in (
        ({"table": "a; b"}, "Expected the name of a table"),
        ({"table": "a", "columns": "b, b"}, "Expected names of columns, each once"),
        ({"table": "a"}, "Expected --database, and not the other"),
        ({"table": "a", "driver": "psycopg"}, "Expected --connection, and not the other"),
        ({"table": "a", "driver": "../x"}, "Expected a module of Python"),
    ):
        with pytest.raises(OptionError, match=text):
            made("sink", "jdbc", **given)
    arguments = tmp_path / "c.json"
    arguments.write_text(json.dumps([]))
    arguments.chmod(0o600)
    with pytest.raises(SetupError, match="json is not a driver of DB-API"):
        made("sink", "jdbc", table="a", driver="json", connection=str(arguments)).open_sink(SinkContext(None, "s"))
    with pytest.raises(SetupError, match="jdbc needs the driver not_there"):
        made("sink", "jdbc", table="a", driver="not_there", connection=str(arguments)).open_sink(SinkContext(None, "s"))


# kafka


def test_kafka_makes_messages_of_records_and_records_of_messages() -> None:
    source = made("source", "kafka", topic="orders")
    source.give_up_after(3)
    config = source.config
    assert (config.topics, config.group_id, config.retry.max_retries) == (("orders",), "s", 2)
    found = config.translator.apply(KafkaRecord("orders", 1, 2, "k", "v", 3))
    headers = {"kafka_topic": "orders", "kafka_partition": 1, "kafka_offset": 2, "kafka_timestamp": 3, "kafka_key": "k"}
    assert list(found) == ["v", headers]
    assert KeyMapper(parse_expression("headers.h"))(message({"a": 1})) == ("1", '{"a": 1}')
    assert KeyMapper(parse_expression("null"))(message(None)) == (None, None)
    with pytest.raises(OptionError, match="bootstrap servers are host:port"):
        made("sink", "kafka", brokers="nowhere")
