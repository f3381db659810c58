"""The picture of a minute: what is drawn for which time."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from lab.benchmarks.plots import over_time
from lab.benchmarks.studies.minute import span, steps


def test_each_tenth_of_a_second_has_its_median_and_its_slowest() -> None:
    acks = np.array([[0.01, 1.0], [0.02, 2.0], [0.03, 9.0], [0.25, 4.0]])
    assert steps(acks, 1.0) == ([(0.05, 2.0), (0.25, 4.0)], [(0.05, 9.0), (0.25, 4.0)])


def test_a_micro_batch_begins_when_it_has_its_barrier() -> None:
    batch = {"timestamp": "1970-01-01T00:01:40.000Z", "durationMs": {"triggerExecution": 1000, "latestOffset": 900}}
    begin, end = span(batch, 90.0)
    assert (round(begin, 6), round(end, 6)) == (10.9, 11.0)


def test_the_picture_has_a_bar_for_each_checkpoint_and_a_dot_for_each_slowest() -> None:
    drawing = over_time("Title", "ms", 10.0, [(0.05, 1.0), (0.15, 2.0)], [(0.05, 9.0)], [(1.0, 1.1), (2.0, 2.1)])
    root = ElementTree.fromstring(drawing)
    names = [element.tag.rpartition("}")[2] for element in root]
    assert (names.count("rect"), names.count("circle")) == (1 + 2, 1)
