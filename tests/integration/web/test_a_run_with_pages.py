"""`storm-spark run --ui`: the link logs in, the page shows what runs, and ends it as Ctrl-C does.

The same run pushes its metrics by OTLP, and has an event logger and a metrics consumer.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lengths import PATIENCE_SECS
from otlp_receiver import Receiver, points
from processes import members, script
from waiting import eventually

TOPOLOGY = """
import itertools
from storm_on_spark import BaseBasicBolt, BaseRichSpout, TopologyBuilder
from storm_on_spark.api.metrics import IEventLogger, IMetricsConsumer

class ToFile(IEventLogger):
    def prepare(self, conf, arguments):
        self.file = open(arguments["file"], "w", buffering=1)

    def log(self, event):
        self.file.write(f"{event.component} {event.values}\\n")

    def close(self):
        self.file.write("closed\\n")
        self.file.close()

class Points(IMetricsConsumer):
    def prepare(self, conf, argument):
        self.file = open(argument, "w", buffering=1)

    def handle_data_points(self, task_info, data_points):
        for point in data_points:
            self.file.write(f"{task_info.src_component_id} {point.name} {point.value}\\n")

    def cleanup(self):
        self.file.write("closed\\n")
        self.file.close()

class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.numbers = collector, itertools.count()

    def next_tuple(self):
        number = next(self.numbers)
        self.collector.emit([number], message_id=number)

    def declare_output_fields(self, declarer):
        declarer.declare(["number"])

class Last(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup.values[0] == 7:
            raise ValueError("<b>seven</b>")

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("last", Last(), 2).shuffle_grouping("numbers")
topology = builder.create_topology()
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def follow(browser: httpx.Client, to: str, came: threading.Event) -> None:
    """Reads a page's stream of events, until the server ends it."""
    with (
        contextlib.suppress(httpx.HTTPError),
        browser.stream("GET", to, headers={"Accept": "text/event-stream"}, timeout=PATIENCE_SECS) as answer,
    ):
        for _ in answer.iter_lines():
            came.set()


@pytest.mark.parametrize(
    "mode",
    ["realtime", pytest.param("latency", marks=pytest.mark.soak)],
)
def test_a_run(tmp_path: Path, mode: str, receiver: Receiver) -> None:
    # Short, as the path of a live process's socket has the name.
    (tmp_path / "endless.py").write_text(TOPOLOGY)
    events, counted = tmp_path / "events", tmp_path / "points"
    conf = {
        "topology.fail.fast": "false",
        "topology.profile": mode,
        "topology.max.spout.pending": "1000",
        "topology.metrics.otlp.endpoint": receiver.url,
        "topology.builtin.metrics.bucket.size.secs": "1",
        "topology.metrics.consumer.register": f'[{{class: endless.Points, argument: "{counted}"}}]',
        "topology.event.logger.register": f'[{{class: endless.ToFile, arguments: {{file: "{events}"}}}}]',
    }
    options = [
        "--ui",
        "--quiet",
        "--name",
        "endless",
        *(part for pair in conf.items() for part in ("-c", "=".join(pair))),
    ]
    with script(tmp_path / "tmp", "-m", "storm_on_spark.cli", "run", str(tmp_path / "endless.py"), *options) as process:
        assert process.stderr is not None
        link = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+/ui/login\?code=\S+", line)))
        root = link.partition("/ui/")[0]
        assert httpx.get(f"{root}/ui/topology/endless").status_code == 401
        with httpx.Client(base_url=root, follow_redirects=True) as browser:
            page = browser.get(link)
            assert str(page.url) == f"{root}/ui/topology/endless"
            assert 'aria-label="numbers: spout' in page.text

            def shown() -> str:
                return browser.get("/ui/topology/endless/component/last").text

            eventually(lambda: "&lt;b&gt;seven&lt;/b&gt;" in shown(), shown)
            assert "Input: <code>(7,)</code>" in shown()
            csrf = re.search(r'name="csrf" value="([^"]+)"', shown())
            assert csrf is not None
            where_the_time_goes(browser, mode)

            def sampled() -> str:
                return browser.get("/ui/topology/endless/samples?component=last").text

            form = {"csrf": csrf[1], "sure": "yes", "component": "", "percent": "0.02"}
            assert "sample 0.02 % of the tuples" in browser.post("/ui/topology/endless/act/sample", data=form).text

            def ways() -> list[str]:
                rows = [row for row in sampled().split("<tr>") if "/tree/" in row and "<td>acked</td>" in row]
                links = [found[1] for row in rows if (found := re.search(r'href="(\S+/tree/\w+)"', row))]
                return [page.text for to in links[-5:] if (page := browser.get(to)).status_code == 200]

            parts = ("numbers, task", ">last</a>, task", "Took", "acked")
            eventually(lambda: any(all(part in way for part in parts) for way in ways()), sampled)
            form["percent"] = "0"
            browser.post("/ui/topology/endless/act/sample", data=form)
            assert "Nothing is sampled at the moment" in sampled()
            came = threading.Event()
            follower = threading.Thread(target=follow, args=(browser, "/ui/topology/endless", came))
            follower.start()
            assert came.wait(PATIENCE_SECS)
            if mode == "realtime":
                ended = browser.post("/ui/topology/endless/act/kill", data={"csrf": csrf[1], "sure": "yes"})
                assert "The topology ends." in ended.text
            else:
                process.send_signal(signal.SIGINT)
            process.stderr.read()
            assert process.wait(PATIENCE_SECS) == 0
            follower.join(PATIENCE_SECS)
            assert not follower.is_alive()
        eventually(lambda: not members(process.pid), lambda: members(process.pid))
    executed = points(receiver.metrics()["storm_component_executed_tuples"])
    assert sum(point.as_int or point.as_double for point in executed) > 7
    said = events.read_text().splitlines()
    assert any(re.fullmatch(r"numbers \(?\d+,\)?", line) for line in said), said[:5]
    assert said[-1] == "closed"
    told = counted.read_text().splitlines()
    executed_there = [re.fullmatch(r"last __execute-count {'numbers:default': (\d+)}", line) for line in told]
    assert sum(int(found[1]) for found in executed_there if found) > 7, told[:5]
    assert told[-1] == "closed"


def where_the_time_goes(browser: httpx.Client, mode: str) -> None:
    """Waits until the page says where the milliseconds of rounds and of micro-batches go."""

    def page() -> str:
        return browser.get("/ui/topology/endless").text

    def spent(part: str, text: str) -> bool:
        found = re.search(rf'</span> {part}</th><td class="n">([\d,.]+)</td>', text)
        return found is not None and float(found[1].replace(",", "")) > 0

    parts = ("executes", "plans") + (("bolts and ackers", "logs rounds", "spouts emit") if mode == "realtime" else ())
    eventually(lambda: all(spent(part, text) for text in [page()] for part in parts), page)
    assert ("In real time" in page()) is (mode == "realtime")
