"""What a notebook shows: well-formed, escaped, and nothing from elsewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import pytest

from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, Topology, TopologyBuilder, compile_topology
from storm_on_spark.api.info import ComponentInfo, ErrorInfo, TopologyInfo
from storm_on_spark.api.text import html
from storm_on_spark.api.text.charts import sparkline, stacked_bars
from storm_on_spark.spark.state import BoltState

SVG = "{http://www.w3.org/2000/svg}"
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
    assert len(list(root.iter(f"{SVG}rect"))) == 3
    assert len(list(root.iter(f"{SVG}path"))) == 4 + 1  # and the head of the arrows
    for text in ("spout <b>", "one", "two", "shuffle", "fields(n)", "all"):
        assert text in texts(root)


def test_boxes_stand_in_the_order_of_the_stream_and_never_on_one_another() -> None:
    root = parsed(cyclic()._repr_html_())
    boxes = [(float(box.get("x", "")), float(box.get("y", ""))) for box in root.iter(f"{SVG}rect")]
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


def wide() -> Topology:
    """One spout to six bolts, these to one; and an arrow past all of them."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Spout())
    last = builder.set_bolt("last", Bolt()).shuffle_grouping("spout")
    for number in range(6):
        builder.set_bolt(f"bolt {number}", Bolt()).partial_key_grouping("spout", "n")
        last.shuffle_grouping(f"bolt {number}")
    return builder.create_topology()


def points_of(path: str) -> Iterator[tuple[float, float]]:
    """Points on a path of lines and of curves, close to one another."""
    here = (0.0, 0.0)
    for kind, text in re.findall(r"([MLQC])([^MLQC]+)", path):
        numbers = list(map(float, re.findall(r"-?[\d.]+", text)))
        ends = [here, *zip(numbers[::2], numbers[1::2], strict=True)]
        for step in range(0 if kind == "M" else 101):
            between = ends  # de Casteljau
            while len(between) > 1:
                between = [
                    (ax + (bx - ax) * step / 100, ay + (by - ay) * step / 100)
                    for (ax, ay), (bx, by) in itertools.pairwise(between)
                ]
            yield between[0]
        here = ends[-1]


@pytest.mark.parametrize("make", [cyclic, wide])
@pytest.mark.parametrize("compiled", [False, True])
def test_labels_stand_beside_the_arrows_and_not_on_them(make: Callable[[], Topology], compiled: bool) -> None:
    topology = make()
    (picture,) = parsed((compile_topology(topology) if compiled else topology)._repr_html_()).iter(f"{SVG}svg")
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    lines = [list(points_of(path.get("d", ""))) for path in picture if path.tag == f"{SVG}path"]
    labels = [text for text in picture if text.tag == f"{SVG}text"]
    assert len(labels) == len(lines)
    taken: set[tuple[int, int]] = set()
    for label in labels:
        # Digits and letters of this size are 5 to 6 wide on average, and 8 high.
        x, y, half = float(label.get("x", "")), float(label.get("y", "")), 2.8 * len(label[0].tail or "")
        assert x - half > 0
        assert x + half < width
        assert 8 < y < height
        assert not [(px, py) for line in lines for px, py in line if abs(px - x) < half and y - 8 < py < y + 1]
        assert (round(x), round(y)) not in taken
        taken.add((round(x), round(y)))
    boxes = [(float(box.get("x", "")), float(box.get("y", ""))) for box in picture.iter(f"{SVG}rect")]
    for px, py in itertools.chain.from_iterable(lines):
        assert not any(x + 1 < px < x + 167 and y + 1 < py < y + 45 for x, y in boxes), "an arrow is behind a box"


def test_an_arrow_leads_to_the_acker_and_says_what_goes_there() -> None:
    (picture,) = parsed(compile_topology(cyclic())._repr_html_()).iter(f"{SVG}svg")
    assert "every stage: acks and fails" in texts(picture)
    *_, (x, y) = points_of([path for path in picture if path.tag == f"{SVG}path"][-1].get("d", ""))
    (box,) = (group.find(f"{SVG}rect") for group in picture if group.tag == f"{SVG}g" and "__acker" in texts(group))
    assert box is not None
    assert float(box.get("x", "")) < x < float(box.get("x", "")) + 168
    assert y - 8 == float(box.get("y", "")) + 46, "the arrow's head is 8 long"
    without = compile_topology(cyclic(), {"topology.acker.executors": 0})._repr_html_()
    assert "acks and fails" not in texts(parsed(without))


def test_a_bolts_state_is_shown_whole() -> None:
    counts = {f"word {number}": number for number in range(500)}
    shown = texts(parsed(BoltState({1: {"counts": counts}})._repr_html_()))
    assert repr(counts) in shown
    endless = texts(parsed(BoltState({1: {"text": "x" * 100_000}})._repr_html_()))
    assert "x..." in endless
    assert len(endless) < 30_000


def test_charts_have_axes_with_round_numbers() -> None:
    shown = texts(parsed(html.block(stacked_bars([[100, 800], [900, 350]], ["7", "8"], ["a", "b"], "ms", "batch"))))
    for text in ("0", "500", "1,000", "1,500", "ms", "7", "8", "batch"):
        assert text in shown
    shown = texts(parsed(html.block(sparkline([0, 2_300, 900], "acked a second"))))
    for text in ("0", "1,000", "3,000", "2 s ago", "now"):
        assert text in shown


@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, 5.0, 2.0], [float(n) for n in range(500)]])
def test_a_sparkline_stays_in_its_frame(values: list[float]) -> None:
    root = parsed(html.block(sparkline(values, EVIL)))
    (curve,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in curve.get("points", "").split()]
    assert len(points) == len(values)
    (picture,) = root.iter(f"{SVG}svg")
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_endless_tables_are_cut_and_say_so() -> None:
    root = parsed(html.block(html.table(["n"], ([n] for n in range(10_000)))))
    assert len(list(root.iter("tr"))) == 201
    assert "and 9,800 more" in texts(root)
