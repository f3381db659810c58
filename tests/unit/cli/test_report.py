"""Progress and the report at the end, without a run."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.cli.progress import Progress
from storm_on_spark.cli.report import document, print_result, print_summary

INFO = TopologyInfo(
    "words",
    "COMPLETED",
    2.0,
    emitted=2000,
    acked=1999,
    failed=1,
    complete_latency_ms={"p50": 80.4, "p95": 120.0, "p99": 1200.0},
    components={"split": ComponentInfo("split", "basic bolt", 2, 2000, 9000, 2000, 0, 0.0123)},
)


def plain() -> Console:
    return Console(file=io.StringIO(), width=120)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_document_has_the_same_keys_whether_the_topology_ran_or_not() -> None:
    ran, never = document("words", INFO, None), document(None, None, "no such file")
    assert set(ran) == set(never)
    assert json.loads(json.dumps(ran))["components"]["split"] == {
        "executed": 2000,
        "emitted": 9000,
        "acked": 2000,
        "failed": 0,
        "execute_latency_ms": 0.0123,
    }
    assert never["complete_latency_ms"] is None
    assert document("words", INFO, None, [])["result"] == []


def test_the_summary_says_all_that_counts() -> None:
    console = plain()
    print_summary(console, INFO)
    assert written(console).splitlines()[0] == (
        "words: 2,000 emitted, 1,999 acked, 1 failed, 0 pending in 2.0 s: 1,000 acked/s, "
        "complete latency p50 80 ms, p95 120 ms, p99 1,200 ms"
    )
    assert written(console).splitlines()[2].split() == ["split", "2", "2,000", "9,000", "2,000", "0", "0.012"]


def test_an_unknown_latency_is_not_shown_as_zero() -> None:
    console = plain()
    print_summary(console, TopologyInfo("words", "KILLED", 0.0))
    assert "complete latency n/a (nothing was acked)" in written(console)


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        ([{"word": "[red]", "count": 1200}, {"word": "a"}], [["word", "count"], ["[red]", "1,200"], ["a", "None"]]),
        ({"total": 3}, [["total"], ["3"]]),
        (["[bold]", 2], [["[bold]"], ["2"]]),
        ([], []),
        ("text", [["text"]]),
    ],
)
def test_results_are_tables_or_lines_and_never_markup(result: object, lines: list[list[str]]) -> None:
    console = plain()
    print_result(console, result)
    assert [line.split() for line in written(console).splitlines()] == lines


def test_progress_is_a_line_every_few_seconds_where_there_is_no_terminal() -> None:
    console, now = plain(), [0.0]
    with Progress(console, clock=lambda: now[0]) as progress:
        progress.say("Starting Spark ...")
        for second in range(12):
            now[0] = float(second)
            progress.show(TopologyInfo("words", "ACTIVE", second, acked=100 * second), "  draining")
    lines = written(console).splitlines()
    assert lines[0] == "Starting Spark ..."
    assert len(lines) == 4
    assert lines[-1].endswith("100 acked/s  draining")


def test_quiet_progress_says_nothing() -> None:
    console = plain()
    with Progress(console, quiet=True) as progress:
        progress.say("Starting Spark ...")
        progress.show(INFO)
    assert written(console) == ""
