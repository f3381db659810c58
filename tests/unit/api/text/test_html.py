"""What a notebook shows: well-formed, escaped, and nothing from elsewhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder, compile_topology
from storm_on_spark.api.info import ComponentInfo, ErrorInfo, TopologyInfo
from storm_on_spark.api.text import html

EVIL = "<script>alert(1)</script>&\"'"


class Spout(BaseRichSpout):
    def open(self, conf, context, collector):
        pass

    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


class Bolt(BaseBasicBolt):
    def execute(self, tup, collector):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def cyclic() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("spout <b>", Spout())
    builder.set_bolt("one", Bolt(), 2).shuffle_grouping("spout <b>").fields_grouping("two", "n")
    builder.set_bolt("two", Bolt()).all_grouping("one").shuffle_grouping("spout <b>")
    return builder.create_topology()


def parsed(text: str) -> ElementTree.Element:
    """Returns it as XML: whatever isn't closed or escaped is an error."""
    assert not re.search(r"<script|<link|<img|@import|url\(\s*['\"]?http", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}
    return ElementTree.fromstring(text)


def texts(root: ElementTree.Element) -> str:
    return " ".join(root.itertext())


def test_a_topology_is_a_graph_of_all_its_components_and_groupings() -> None:
    root = parsed(cyclic()._repr_html_())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 3
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 4 + 1  # and the head of the arrows
    for text in ("spout <b>", "one", "two", "shuffle", "fields(n)", "all"):
        assert text in texts(root)


def test_boxes_stand_in_the_order_of_the_stream_and_never_on_one_another() -> None:
    root = parsed(cyclic()._repr_html_())
    boxes = [
        (float(box.get("x", "")), float(box.get("y", ""))) for box in root.iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(set(boxes)) == 3
    assert [x for x, _ in boxes] == sorted(x for x, _ in boxes)


def test_a_plan_says_why() -> None:
    shown = texts(parsed(compile_topology(cyclic())._repr_html_()))
    for text in ("Compiled topology", "__acker", "stage 0", "carried over to the next micro-batch"):
        assert text in shown


def test_counters_errors_and_traces_are_escaped() -> None:
    error = ErrorInfo(EVIL, 4, f"no {EVIL}", 1.0, f"Traceback\n  {EVIL}\n", f"('{EVIL}',)", 10)
    bolt = ComponentInfo(EVIL, "bolt", 2, executed=1_234_567, errors=(error,))
    info = TopologyInfo(EVIL, "FAILED", 2.0, acked=7, components={EVIL: bolt}, error=EVIL, error_trace=EVIL)
    shown = texts(parsed(info._repr_html_()))
    assert "1,234,567" in shown
    assert shown.count(EVIL) >= 7
    assert f"input: ('{EVIL}',)" in shown
    assert f"no {EVIL} (x 10, first " in shown


@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, 5.0, 2.0], [float(n) for n in range(500)]])
def test_a_sparkline_stays_in_its_frame(values: list[float]) -> None:
    root = parsed(html.block(html.sparkline(values, EVIL)))
    (curve,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, point.split(","))) for point in curve.get("points", "").split()]
    assert len(points) == len(values)
    assert all(0 <= x <= 320 and 0 <= y <= 44 for x, y in points)


def test_endless_tables_are_cut_and_say_so() -> None:
    root = parsed(html.block(html.table(["n"], ([n] for n in range(10_000)))))
    assert len(list(root.iter("tr"))) == 201
    assert "and 9,800 more" in texts(root)
