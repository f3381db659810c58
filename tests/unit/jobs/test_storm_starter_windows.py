"""The windowing examples of storm-starter, in process, against plain Python."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.testing import BoltTester, ManualClock, make_tuple

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs" / "storm_starter"))

import integers
import persistent_windowing
import sliding_tuple_ts
import sliding_window
import stateful_windowing

COUNT = 400


class FastClock(ManualClock):
    """Moves on whenever somebody looks at it."""

    def now_ms(self) -> int:
        self.advance(1)
        return super().now_ms()


def printed(job: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What an example prints until all its tuples are acked or have timed out."""
    conf = {**job.conf, integers.COUNT: COUNT, integers.PAUSE: 0}
    topology = InProcessTopology(compile_graph(job.build(conf), effective_conf(conf)), "example", FastClock())
    info = topology.run()
    assert info.status == "COMPLETED"
    assert not any(component.errors for component in info.components.values())
    return capsys.readouterr().out.splitlines()


def values(task: int) -> list[int]:
    """The integers of the spout, whose task has that number."""
    source = random.Random(task)
    return [source.randrange(1000) for _ in range(COUNT)]


def test_sliding_window(capsys: pytest.CaptureFixture[str]) -> None:
    found = values(task=1)
    sums = [sum(found[max(0, end - 30) : end]) for end in range(10, COUNT + 1, 10)]
    means = [sum(sums[at : at + 3]) // 3 for at in range(0, len(sums) - 2, 3)]
    assert printed(sliding_window, capsys) == [str(mean) for mean in means]


def test_sliding_tuple_ts(capsys: pytest.CaptureFixture[str]) -> None:
    timed = [(1_700_000_000_000 + 100 * at, value) for at, value in enumerate(values(task=1), 1)]
    first, watermark = timed[0][0], timed[-1][0] - 5000
    ends = [end for end in range(first // 3000 * 3000, watermark + 1, 3000) if end >= first]
    sums = [sum(value for time, value in timed if end - 5000 < time <= end) for end in ends]
    assert printed(sliding_tuple_ts, capsys) == [str(total) for total in sums]


def test_stateful_windowing(capsys: pytest.CaptureFixture[str]) -> None:
    found, total, totals = values(task=2), 0, []
    for end in range(3, COUNT + 1, 3):
        total += sum(found[max(0, end - 5) : end])
        totals.append(str(total))
    assert printed(stateful_windowing, capsys) == totals


def test_persistent_windowing() -> None:
    found, fields = values(task=1), ["value", "ts", "msgid"]
    bolt = persistent_windowing.AvgBolt().with_window(
        persistent_windowing.Duration.seconds(10), persistent_windowing.Duration.seconds(2)
    )
    tester = BoltTester(bolt.with_persistence(), [make_tuple([0, 0, 0], fields)])
    shown, held = [], []
    for second in range(1, COUNT // 10 + 1):
        new = found[10 * second - 10 : 10 * second]
        tester.execute(*(make_tuple([value, 0, 0], fields) for value in new))
        held.append(new)
        tester.advance(1)
        if second % 7 == 0:
            tester.restart()
        if second % 2 == 0:
            shown.append([value for part in held[-10:] for value in part])
    every: list[int] = []
    for window, (of_all, of_window) in zip(shown, tester.collector.values(), strict=True):
        every += window
        assert of_all == f"global={sum(every) / len(every):.2f}"
        assert of_window == f"window={sum(window) / len(window):.2f}"
