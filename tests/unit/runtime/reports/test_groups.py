"""Equal errors count as one, wherever they are put together, and their number is exact."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import BaseBasicBolt, TopologyBuilder
from storm_on_spark.api.config import effective_conf
from storm_on_spark.metrics.latency import Latencies
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.batches.metrics.counters import Metrics
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live.execution.gathered import Gathered
from storm_on_spark.runtime.reports.groups import Groups
from storm_on_spark.runtime.reports.report import Failure, Reported, SpoutStats
from storm_on_spark.runtime.spouts.messages import Progress
from storm_on_spark.testing import ListSpout


def trace(line: int) -> str:
    return f'Traceback (most recent call last):\n  File "/home/u/jobs.py", line {line}, in execute\nKeyError: 1\n'


def failure(text: str = "KeyError: 1", line: int | None = 7, **more: object) -> Failure:
    task = more.pop("task", 1)
    message = f'component "ends" (task {task}) failed in execute: {text}'
    own = "" if line is None else trace(line)
    return Failure("ends", task, message, "", False, own, **more)  # type: ignore[arg-type]


class Ends(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(plan(), clock)


def plan() -> PlacedPlan:
    builder = TopologyBuilder()
    builder.set_spout("numbers", ListSpout([1]))
    builder.set_bolt("ends", Ends(), 4).shuffle_grouping("numbers")
    return place(compile_graph(builder.create_topology(), effective_conf({})), 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([7, 8, None]), st.integers(1, 5)), max_size=40))
def test_no_error_is_lost_and_none_is_counted_twice(errors: list[tuple[str, int | None, int]]) -> None:
    small, gathered, later = Groups(3), Gathered(), Gathered()
    for number, (text, line, count) in enumerate(errors):
        found = failure(text, line, task=number, times=count)
        small.add(found)
        (later if number % 2 else gathered).add_reports([found])
    total = sum(count for *_, count in errors)
    assert sum(group.failure.times for group in small) + small.left_out == total
    assert len(small) <= 3
    gathered.add(later)
    reported = [each for body in gathered.rows() for each in chunk.read_report(body)]
    assert sum(each.times for each in reported) == total


def test_errors_are_equal_by_component_text_and_line_and_not_by_task(metrics: Metrics) -> None:
    for task in range(10):
        metrics.add_failure(failure(task=task, input=f"({task},)"))
    metrics.add_failure(failure(line=8))
    metrics.add_failure(failure("KeyError: 2"))
    found = metrics.components()["ends"].errors
    assert [(error.count, error.location and error.location[1], error.message[-1]) for error in found] == [
        (10, 7, "1"),
        (1, 8, "1"),
        (1, 7, "2"),
    ]
    assert (found[0].task, found[0].input) == (9, "(9,)"), "of the last"
    assert found[0].first_time <= found[0].time


def test_an_error_without_its_traceback_belongs_to_the_last_of_the_same_text(metrics: Metrics) -> None:
    metrics.add_failure(failure(line=7, input="(1,)"))
    metrics.add_failure(failure(line=8, input="(2,)"))
    metrics.add_failure(failure(line=None, times=5))
    found = metrics.components()["ends"].errors
    assert [(error.count, error.input) for error in found] == [(1, "(1,)"), (6, "(2,)")]
    assert "line 8" in found[1].trace


def test_equal_errors_are_counted_beyond_the_most_that_an_interval_has_room_for(metrics: Metrics) -> None:
    for number in range(10):
        metrics.add_failure(failure(str(number)))
    for _ in range(1000):
        metrics.add_failure(failure("3"))
    found = metrics.components()["ends"].errors
    assert [(error.message[-1], error.count) for error in found] == [
        ("0", 1),
        ("1", 1),
        ("2", 1),
        ("4", 1),
        ("3", 1001),
    ]


def test_equal_errors_are_logged_once_in_an_interval(metrics: Metrics, clock: Clock) -> None:
    first = metrics.add_failure(failure(input="(1,)"))
    assert first is not None
    assert all(part in first.text for part in ("line 7", "input: (1,)"))
    assert [metrics.add_failure(failure()) for _ in range(8)] == [None] * 8
    clock.time += 10
    again = metrics.add_failure(failure(input="(2,)"))
    assert again is not None
    assert all(part in again.text for part in ("(x 10 since ", "input: (2,)"))
    assert "line 7" not in again.text


def test_what_a_spout_reports_again_and_again_is_one_error(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    (task,) = plan().components["numbers"].tasks
    reported = tuple(Reported("OSError: away", trace(3) if number < 20 else "", "") for number in range(50))
    with caplog.at_level(logging.WARNING):
        metrics.add_spout(
            Progress(task, None, False, 0, 0, SpoutStats(), Latencies(), reported)  # type: ignore[arg-type]
        )
    assert [error.count for error in metrics.components()["numbers"].errors] == [50]
    assert [record.message.partition("\n")[0] for record in caplog.records] == ["OSError: away (x 50)"]
