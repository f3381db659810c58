"""What is made of the figures: verdicts, tables, plots."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from lab.benchmarks import cases, report
from lab.benchmarks.breakdown import parts
from lab.benchmarks.cases import CASES, FULL, at
from lab.benchmarks.harness import Outcome, Pace
from lab.benchmarks.plots import Bar, bars, stacked
from lab.benchmarks.targets import REALTIME_TARGETS, TARGETS, judge, judge_realtime

PACE = Pace(rounds=3)


def speed(roots_per_second: float) -> dict[str, Any]:
    phase = {
        "roots_per_second": roots_per_second,
        "latency_ms": None,
        "cores_used": 2.0,
        "cpu_secs_per_million": 2e6 / roots_per_second,
    }
    return {"phases": {FULL.name: phase}, "first_ack_secs": 7.0, "memory_mb": {"jvm": 500.0}}


@pytest.fixture
def outcomes() -> dict[str, Outcome]:
    """Two rounds of three that went well, a contender that is not here, and one that failed."""
    latency = {"phases": {at(1000).name: {**speed(1000)["phases"][FULL.name], "latency_ms": {"p50": 2.0, "p95": 3.0}}}}
    return {
        cases.PER_TUPLE: Outcome(CASES[cases.PER_TUPLE], [speed(100_000), None, speed(150_000)], problems=["it broke"]),
        cases.STORM: Outcome(CASES[cases.STORM], [speed(50_000), speed(10), speed(100_000)]),
        cases.STORM_PYTHON: Outcome(CASES[cases.STORM_PYTHON], skipped="There is no mvn here."),
        cases.LATENCY: Outcome(CASES[cases.LATENCY], [latency] * 3),
    }


def verdict_on(outcomes: dict[str, Outcome], what: str) -> Any:
    return next(verdict for verdict in judge(outcomes, 3, None) if what in verdict.target.what)


def test_contenders_are_compared_within_a_round(outcomes: dict[str, Outcome]) -> None:
    verdict = verdict_on(outcomes, "over Storm's Java bolts")
    assert verdict.values == (2.0, 1.5)
    assert (verdict.median, verdict.met, verdict.missing) == (1.75, True, None)


def test_a_target_that_is_not_met() -> None:
    outcomes = {
        name: Outcome(CASES[name], [speed(value)]) for name, value in ((cases.PER_TUPLE, 10), (cases.ONE_CORE, 9))
    }
    verdict = next(verdict for verdict in judge(outcomes, 1, None) if "local[1]" in verdict.target.what)
    assert verdict.met is False


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("Storm's Python bolts", "There is no mvn here."),
        ("command to first ack", '"command to first ack" was not run'),
        ("p99 over p50", '"latency, per-tuple" did not measure phases, 1,000/s, latency_ms, p99'),
        ("soak: memory", "`make soak` was not run here"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(outcomes: dict[str, Outcome], what: str, sentence: str) -> None:
    verdict = verdict_on(outcomes, what)
    assert (verdict.met, verdict.missing) == (None, sentence)


def test_the_last_soak_is_judged_too() -> None:
    soak = {"hours": 1.0, "ratios": {"memory_mb": 1.02, "batch_ms": 2.0, "checkpoint_mb": 1.0, "open_files": 1.0}}
    assert [verdict.met for verdict in judge({}, 3, soak)[-4:]] == [True, False, True, True]


def test_every_target_names_cases_that_there_are() -> None:
    """Else the row would say for ever that it was not run."""
    for verdict in judge({}, 1, None)[: len(TARGETS)]:
        assert verdict.missing is not None
        [name] = re.findall(r'^"(.+)" was not run$', verdict.missing)
        assert CASES[name].group == "main"


def test_targets_of_real_time_name_cases_of_its_round() -> None:
    verdicts = judge_realtime({}, 1)
    assert len(verdicts) == len(REALTIME_TARGETS)
    for verdict in verdicts:
        [name] = re.findall(r'^"(.+)" was not run$', verdict.missing or "")
        assert CASES[name].profile == "realtime"
    assert all(CASES[name].group == "main" for name in cases.REALTIME_BESIDE)


def test_real_time_is_compared_with_storm_and_has_a_place_of_its_own(
    outcomes: dict[str, Outcome], tmp_path: Path
) -> None:
    latency = {"latency_ms": {"p50": 0.5, "p95": 2.0, "p99": 20.0}, "cores_used": 0.5}
    for name, times in ((cases.REALTIME, 1), (cases.STORM, 4)):
        found = {**latency, "latency_ms": {p: times * ms for p, ms in latency["latency_ms"].items()}}
        outcomes[name] = Outcome(CASES[name], [{"phases": {at(1000).name: found}}])
    verdicts = judge_realtime(outcomes, 1)
    met = {verdict.target.what: (verdict.median, verdict.met) for verdict in verdicts if verdict.values}
    assert met["word count at 1,000/s, acked: p50"] == (0.5, True)
    assert met["word count at 1,000/s, acked: p99"] == (20.0, False)
    assert met["word count at 1,000/s, acked: p50 over Storm's Java bolts"] == (0.25, True)
    page = tmp_path / "real-time.md"
    page.write_text(f"before\n{report.REALTIME_BEGIN}\n{report.REALTIME_END}\n")
    report.write_docs(outcomes, verdicts, PACE, tmp_path, "realtime")
    text = page.read_text()
    assert text.startswith(f"before\n{report.REALTIME_BEGIN}\n")
    assert "| real time | 1,000/s | 0.50 | 2.00 | 20.0 | 0.50 |" in text
    assert re.findall(r"!\[[^\]]+\]\((\S+)\)", text) == ["real-time.svg"]


def test_the_tables_show_everything(outcomes: dict[str, Outcome]) -> None:
    verdicts = judge(outcomes, 3, None)
    page = report.markdown(outcomes, verdicts, PACE)
    assert (
        "| word count, per-tuple, acked, over Storm's Java bolts | ≥ 1.2 x | 1.75 x | 1.50 x to 2.00 x | met |" in page
    )
    assert "| per-tuple, acked | 125,000 | 100,000 | 150,000 | 1.00 | 16.7 |  |" in page
    assert "| latency, per-tuple | 1,000/s | 2.00 | 3.00 |  | 2.00 |" in page
    assert "- Not run: Storm, Python bolts. There is no mvn here.\n- it broke\n" in page
    console = Console(record=True, width=200)
    report.show(outcomes, verdicts, PACE, console)
    assert "Targets" in console.export_text()


def test_the_page_says_how_many_rounds_each_case_had_and_what_failed_without_its_trace(
    outcomes: dict[str, Outcome],
) -> None:
    assert "3 rounds, " in report.markdown(outcomes, [], PACE)
    outcomes[cases.LATENCY].runs.pop()
    failed = (
        'x ended with exit code 1: Traceback (most recent call last):\n  File "a.py"\nTimeoutError: not within 180 s'
    )
    outcomes[cases.LATENCY].problems.append(failed)
    page = report.markdown(outcomes, [], PACE)
    assert "2 to 3 rounds of a case, " in page
    assert "- x ended with exit code 1: TimeoutError: not within 180 s\n" in page


def test_results_can_be_read_back(outcomes: dict[str, Outcome]) -> None:
    verdicts = judge(outcomes, 3, None)
    document = report.as_json(outcomes, verdicts, PACE, 12.0)
    again, pace, seconds = report.from_json(document)
    assert (again, pace, seconds) == (outcomes, PACE, 12.0)
    assert report.as_json(again, judge(again, 3, None), pace, seconds) == document


def test_tables_and_plots_go_between_the_markers(outcomes: dict[str, Outcome], tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        report.write_docs(outcomes, judge(outcomes, 3, None), PACE, tmp_path)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    images = re.findall(r"!\[[^\]]+\]\((\S+)\)", text)
    assert images == ["throughput.svg", "latency.svg"]
    assert all((tmp_path / image).exists() for image in images)


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text("nothing here")
    with pytest.raises(ValueError, match=r"benchmarks\.md needs the lines <!-- benchmarks: begin -->"):
        report.write_docs({}, [], PACE, tmp_path)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_plot_is_a_drawing_that_fits(logarithmic: bool) -> None:
    rows = [Bar("a & b", 1_000_000, 900_000, 1_200_000, "native"), Bar("<c>", 12, 3, 20, "ours")]
    drawing = ElementTree.fromstring(bars("Speed", "per second", rows, logarithmic=logarithmic))
    space = "{http://www.w3.org/2000/svg}"
    width = float(drawing.attrib["width"])
    _, first, second = drawing.findall(f"{space}rect")
    ends = [float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in (first, second)]
    assert ends[1] < ends[0] < width
    texts = ["".join(text.itertext()) for text in drawing.findall(f"{space}text")]
    assert {"a & b", "<c>", "1,000,000", "12"} <= set(texts)


def test_a_bar_of_parts_is_as_wide_as_they_are() -> None:
    drawing = ElementTree.fromstring(stacked("A batch", "ms", {"a": 30.0, "b": 60.0}))
    bars_of_it = [bar for bar in drawing.findall("{http://www.w3.org/2000/svg}rect") if bar.attrib["height"] == "28"]
    first, second = (float(bar.attrib["width"]) for bar in bars_of_it)
    assert second == pytest.approx(2 * first, rel=0.01)


def test_the_parts_of_a_micro_batch_add_up() -> None:
    batch = {"latestOffset": 5, "walCommit": 2, "queryPlanning": 10, "addBatch": 80, "commitBatch": 3}
    batch["triggerExecution"] = 104
    report = {"durationMs": batch, "stateOperators": []}
    found = parts([report, report], [[20.0, 30.0, 10.0], [22.0, 30.0, 10.0]])
    assert sum(found.values()) == batch["triggerExecution"]
    assert found["source stage"] == 21.0
    assert found["job and sink beside the stages"] == 19.0
    assert found["the rest"] == 4.0


def test_the_parts_of_a_micro_batch_that_is_one_task_add_up() -> None:
    operator = {"allUpdatesTimeMs": 47, "allRemovalsTimeMs": 1, "commitTimeMs": 12}
    report = {"durationMs": {"addBatch": 80, "triggerExecution": 90}, "stateOperators": [operator]}
    found = parts([report], [[75.0]])
    assert sum(found.values()) == 90
    assert found["all stages, in one operator"] == 60.0
    assert found["the Spark task around the operator"] == 15.0
