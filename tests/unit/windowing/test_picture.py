"""The picture in docs/windows.md shows what windows do."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from storm_on_spark import BaseWindowedBolt, Duration
from storm_on_spark.testing import BoltTester, make_tuple

PICTURE = Path(__file__).parents[3] / "docs" / "windows.svg"
LEFT, SECOND = 90, 60
"""Of the axis, in pixels: where it begins, and how long a second is."""


class Shown(BaseWindowedBolt):
    """Notes the names of what is in its windows."""

    def prepare(self, conf, context, collector):
        self.shown = []

    def execute(self, window):
        self.shown.append([[tup["name"] for tup in part] for part in (window.get(), window.new, window.expired)])


def test_the_picture_shows_what_windows_hold_and_ack() -> None:
    texts = [element for element in ElementTree.parse(PICTURE).getroot().iter() if element.tag.endswith("text")]
    names = [text for text in texts if re.fullmatch("[a-h]", text.text or "")]
    came = {text.text: round((float(text.get("x", "")) - LEFT) / SECOND, 2) for text in names if text.get("y") == "46"}
    rows: dict[str, list[str]] = {}
    for text in names:
        rows.setdefault(text.get("y", ""), []).append(text.text or "")
    labels = [
        found for text in texts if (found := re.fullmatch(r"at (\d+) s: new ([^;]*)(?:; acked (.*))?", text.text))
    ]
    drawn = [
        [held, label[2].split(), (label[3] or "").split()]
        for held, label in zip(list(rows.values())[1:], labels, strict=True)
    ]

    tester = BoltTester(Shown().with_window(Duration.seconds(4), Duration.seconds(2)))
    now = 0.0
    for name, time in came.items():
        tester.advance(time - now)
        tester.execute(make_tuple([name], ["name"]))
        now = time
    tester.advance(10 - now)
    assert tester.bolt.bolt.shown == drawn
    assert [int(label[1]) for label in labels] == [2, 4, 6, 8, 10]
    assert [tup["name"] for tup in tester.collector.acked] == [name for _, _, acked in drawn for name in acked]
