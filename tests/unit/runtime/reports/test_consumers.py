"""Consumers of metrics: what they get, and what becomes of those that fail."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.metrics import IMetricsConsumer
from storm_on_spark.metrics.amounts import Amounts
from storm_on_spark.runtime.reports.consumers import Consumers, consumers_of

LOGGING = "org.apache.storm.metric.LoggingMetricsConsumer"
HTTP = "org.apache.storm.metric.HttpForwardingMetricsConsumer"


class Collecting(IMetricsConsumer):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int, dict]] = []
        self.ended = False

    def handle_data_points(self, task_info, data_points):
        points = {point.name: point.value for point in data_points}
        self.got.append((task_info.src_component_id, task_info.src_task_id, points))

    def cleanup(self):
        self.ended = True


class Raising(IMetricsConsumer):
    def handle_data_points(self, task_info, data_points):
        raise RuntimeError("no")


def amounts(times: int) -> Amounts:
    return {
        ("split", 3, "executed", "lines", "default"): 7 * times,
        ("split", 3, "execute_ns", "lines", "default"): 14_000_000 * times,
        ("split", 3, "emitted", "default", ""): 9 * times,
        ("split", 3, "execute_bin", 5, ""): 7 * times,
        ("split", 3, "metric", "hits", "counter"): 2 * times,
    }


def told(*consumers: IMetricsConsumer, sums: list[Amounts]) -> None:
    """Calls consumers with each of the sums but the first, which are those of the start."""
    values = iter(sums)
    runner = Consumers(consumers, 60, lambda: next(values), 6700, lambda: 1000.0)
    for _ in sums[1:]:
        runner.tell()


def test_consumers_get_what_was_counted_since_under_storms_names() -> None:
    consumer = Collecting()
    told(consumer, sums=[amounts(1), amounts(3), amounts(3)])
    assert consumer.got == [
        (
            "split",
            3,
            {
                "__execute-count": {"lines:default": 14},
                "__execute-latency": {"lines:default": 2.0},
                "__emit-count": {"default": 18},
                "hits": 4,
            },
        )
    ]


def test_one_that_raises_is_said_once_and_the_others_get_theirs(caplog: pytest.LogCaptureFixture) -> None:
    consumer = Collecting()
    told(Raising(), consumer, sums=[{}, amounts(1), amounts(2)])
    assert len(consumer.got) == 2
    assert len([record for record in caplog.records if "Raising raised" in record.getMessage()]) == 1


def test_the_last_points_come_before_the_end() -> None:
    consumer, sums = Collecting(), [amounts(1)]
    runner = Consumers([consumer], 3600, lambda: sums[-1], -1)
    runner.start()
    sums.append(amounts(2))
    runner.close()
    assert len(consumer.got) == 1
    assert consumer.ended


def test_the_logging_consumer_writes_storms_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told(*consumers_of([{"class": LOGGING}], {}), sums=[{}, amounts(1)])
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert lines[-1].endswith("  3:split      \thits                     \t2")


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict]]]:
    got: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}/metrics", got
    http.shutdown()
    thread.join()
    http.server_close()


def test_the_http_consumer_posts_them(server: tuple[str, list[dict]]) -> None:
    url, got = server
    told(*consumers_of([{"class": HTTP, "argument": url}], {}), sums=[{}, amounts(1)])
    (document,) = got
    assert document["taskInfo"]["src_component_id"] == "split"
    assert {"name": "hits", "value": 2} in document["dataPoints"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("a text", "mappings with `class`"),
        ({"class": "org.example.Unknown"}, "can't be used"),
        ({"class": "collections.OrderedDict"}, "not a subclass of IMetricsConsumer"),
        ({"class": HTTP, "argument": "file:///etc/passwd"}, "is a URL"),
    ],
)
def test_what_is_no_consumer_is_refused(entry: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        consumers_of([entry], {})
