"""`storm-spark run --ui`: the link logs in, the page shows what runs, and ends it as Ctrl-C does."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from lengths import PATIENCE_SECS
from processes import script
from waiting import eventually

TOPOLOGY = """
import itertools
from storm_on_spark import BaseBasicBolt, BaseRichSpout, TopologyBuilder

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


@pytest.mark.parametrize("mode", [pytest.param("realtime", marks=pytest.mark.representative), "latency"])
def test_a_run_is_looked_at_sampled_and_ended_in_a_browser(tmp_path: Path, mode: str) -> None:
    (tmp_path / "endless.py").write_text(TOPOLOGY)
    options = (
        "--ui",
        "--quiet",
        "--name",
        "endless",
        "-c",
        "topology.fail.fast=false",
        "-c",
        f"topology.profile={mode}",
    )
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
            ended = browser.post("/ui/topology/endless/act/kill", data={"csrf": csrf[1], "sure": "yes"})
            assert "The topology ends." in ended.text
        process.stderr.read()
        assert process.wait(PATIENCE_SECS) == 0
