"""Progress and the report at the end, without a run."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console
from status_page import COUNTS, status_page

from storm_on_spark.api.info import ComponentAtWork, ComponentInfo, ErrorInfo, MicroBatchInfo, TopologyInfo
from storm_on_spark.cli.cluster.watching import errors as errors_command
from storm_on_spark.cli.cluster.watching import status
from storm_on_spark.cli.cluster.watching.status import show
from storm_on_spark.cli.shared.progress import Progress, live_view
from storm_on_spark.cli.shared.report import print_result, print_summary
from storm_on_spark.cli.shared.terminal import logs_to
from storm_on_spark.launch.document import document
from storm_on_spark.runtime.reports.observer import Observer

INFO = TopologyInfo(
    "words",
    "COMPLETED",
    2.0,
    emitted=2000,
    transferred=4000,
    acked=1999,
    failed=1,
    complete_latency_ms={"p50": 80.4, "p95": 120.0, "p99": 1200.0},
    components={"split": ComponentInfo("split", "basic bolt", 2, 2000, 9000, 8000, 2000, 0, 0.0123)},
)


def plain() -> Console:
    return Console(file=io.StringIO(), width=120)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_logs_of_libraries_are_fit_for_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with logs_to(plain(), file):
        logging.getLogger("of.a.library").warning("no such host %s\npassword=hush", "\x1b[2J")
    assert file.read_text().endswith(" WARNING of.a.library no such host \\x1b[2J\npassword=*****\n")


def test_the_document_has_the_same_keys_whether_the_topology_ran_or_not() -> None:
    ran, never = document("words", INFO, None), document(None, None, "no such file")
    assert set(ran) == set(never)
    assert json.loads(json.dumps(ran))["components"]["split"] == {
        "executed": 2000,
        "emitted": 9000,
        "transferred": 8000,
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
        "words: spouts: 2,000 emitted, 4,000 transferred, 1,999 acked, 1 failed, 0 pending in 2.0 s: 1,000 acked/s, "
        "complete latency p50 80 ms, p95 120 ms, p99 1,200 ms"
    )
    assert written(console).splitlines()[2].split() == ["split", "2", "2,000", "9,000", "8,000", "2,000", "0", "0.012"]


def test_an_unknown_latency_is_not_shown_as_zero() -> None:
    console = plain()
    print_summary(console, TopologyInfo("words", "KILLED", 0.0))
    assert "complete latency n/a (nothing was acked)" in written(console)
    console = plain()
    print_summary(console, TopologyInfo("words", "KILLED", 1.0, emitted=3, acked=3))
    assert "complete latency n/a (Spark's own sources don't tell it)" in written(console)


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
            progress.show(
                TopologyInfo("words", "ACTIVE", second, acked=100 * second), f"draining, {12 - second} s more"
            )
    lines = written(console).splitlines()
    assert lines[0] == "Starting Spark ..."
    assert len(lines) == 4
    assert lines[-1].endswith("100 acked/s  draining, 2 s more")


def test_what_is_waited_for_is_said_at_once_and_where_there_is_no_terminal_on_a_line_of_its_own() -> None:
    console, now = plain(), [0.0]
    with Progress(console, clock=lambda: now[0]) as progress:
        progress.observer = Observer(15.0)
        for step in range(60):
            now[0] = step / 2
            done = min(7, max(0, step - 20))
            batch = None if done else MicroBatchInfo(now[0], 0, True)
            at_work = () if done else (ComponentAtWork("count", step, 10),)
            info = TopologyInfo("words", "ACTIVE", now[0], 10, acked=done, pending=10 - done)
            progress.show(dataclasses.replace(info, micro_batch=batch, at_work=at_work))
    lines = written(console).splitlines()
    assert lines[1].endswith("first micro-batch runs, 1 s: `count` has executed 2 of 10")
    assert any(line.endswith("3 messages wait for their timeout (at most 27 s)") for line in lines)


def test_a_live_table_fits_80_columns_and_leaves_the_terminal_as_it_was() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, highlight=False, _environ={})
    bolt = ComponentInfo("a-component-with-a-rather-long-name-indeed", "bolt", 2, 10**9, 10**9, 10**9, 10**9, 0, 12.5)
    info = TopologyInfo(
        "words", "ACTIVE", 3600.0, 10**9, 10**9, 10**9, 0, 5, {"p50": 8.0, "p95": 9.0, "p99": 10.0}, {"bolt": bolt}
    )
    with Progress(console) as progress:
        progress.show(info)
        shown = Console(file=io.StringIO(), width=80)
        for part in live_view(info, progress.observer):
            shown.print(part)
    assert max(map(len, written(shown).splitlines())) <= 80
    assert "1,000,000,000" in written(shown)
    text = file.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_table_is_drawn_when_it_changes_and_a_spinner_turns() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, highlight=False, _environ={})
    with Progress(console) as progress:
        progress.show(TopologyInfo("words", "ACTIVE", 3600.0))
        assert "3,600 s" in file.getvalue()
        drawn = len(file.getvalue())
        screen = progress._live  # noqa: SLF001 # whose thread refreshes it
        assert screen is not None
        screen.refresh()
        assert len(file.getvalue()) == drawn
        progress.show(TopologyInfo("words", "ACTIVE", 3601.0))
        assert "3,601 s" in file.getvalue()[drawn:]
        progress.say("Draining ...")
        drawn = len(file.getvalue())
        screen.refresh()
        assert len(file.getvalue()) > drawn


def test_quiet_progress_says_nothing() -> None:
    console = plain()
    with Progress(console, quiet=True) as progress:
        progress.say("Starting Spark ...")
        progress.show(INFO)
    assert written(console) == ""


def test_a_common_summary_is_a_table_in_80_columns() -> None:
    rows = [ComponentInfo(name, "bolt", 2, 2600, 2600, 0, 2600, 0, 0.001) for name in ("count", "sentences", "split")]
    info = TopologyInfo("words", "ACTIVE", 2.0, components={row.id: row for row in rows})
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    print_summary(console, info)
    (heading,) = (line for line in written(console).splitlines() if "execute ms" in line)
    assert "transferred" in heading
    assert max(map(len, written(console).splitlines())) <= 80


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_word_and_no_number_is_cut_however_narrow_the_terminal_is(width: int, terminal: bool) -> None:
    component = ComponentInfo("a-component-with-a-long-name", "bolt", 16, *[1_234_567_890] * 5, 0.5)
    info = TopologyInfo("words", "ACTIVE", 2.0, components={component.id: component})
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    print_summary(console, info)
    print_result(console, [{"a name": "x" * 30, "[red]": 10**9, "note": "all 8 slots are taken"}])
    lines = written(console).splitlines()
    for whole in ("a-component-with-a-long-name", "1,234,567,890", "0.500", "x" * 30, "all 8 slots are taken", "[red]"):
        assert any(whole in line for line in lines), whole
    # The first line wraps as the terminal wants.
    assert max(map(len, lines[1:])) <= max(width, 44)


def test_a_topologys_status_fits_80_columns_and_its_last_errors_stand_below() -> None:
    counts = {"emitted": 65_501, "transferred": 65_501, "acked": 65_501, "failed": 12}
    spout = {"spoutId": "sentences", "executors": 1, "tasks": 1, **counts, "lastError": ""}
    trace = "Traceback (most recent call last):\n  ...\nKeyError: 'spark'\n"
    bolt = {**spout, "boltId": "count", "executed": 65_501, "executeLatency": "0.011", "lastError": trace}
    page = status_page(
        workers=[{"host": "127.0.0.1", "port": 6704, "uptime": "19s"}],
        driverStatus="ACTIVE",
        spoutStats=counts,
        topologyStats=[counts],
        completeLatencyMs={"p50": 6653.0, "p95": 6653.0, "p99": 6653.0},
        spouts=[spout],
        bolts=[bolt],
    )
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    show(console, page)
    lines = written(console).splitlines()
    assert max(map(len, lines)) <= 80
    (heading,) = (line.split() for line in lines if "execute ms" in line)
    assert heading[:4] == ["component", "tasks", "executed", "emitted"]
    assert lines[-1].strip() == "last error of count: KeyError: 'spark'"
    # Figures stand on the right, also where there is none yet: a spout executes nothing.
    ends = {line.rstrip().rpartition(" ")[2]: len(line.rstrip()) for line in lines if "65,501" in line}
    assert ends["n/a"] == ends["0.011"]


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (None, "tuples are executed in micro-batches"),
        (
            {"executed": 1500, "rounds": 20000},
            "tuples are executed in micro-batches: 1,500 of 20,000 rounds since the last checkpoint have been executed "
            "again",
        ),
    ],
)
def test_a_status_says_how_much_has_been_executed_again(again: dict[str, int] | None, words: str) -> None:
    console = Console(file=io.StringIO(), width=200)
    show(console, status_page(driverStatus="ACTIVE", schedulerInfo="", mode="micro-batches", repetition=again))
    assert words in written(console).splitlines()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_run_ends_with_its_errors_and_equal_ones_are_one() -> None:
    trace = 'Traceback (most recent call last):\n  File "/home/u/jobs.py", line 12, in execute\nKeyError: 1\n'
    errors = [
        ErrorInfo("count", 4, "KeyError: 1", at("2026-11-27T12:01"), trace, "('a', 1)", 1200, at("2026-11-26T23:59")),
        ErrorInfo("count", -1, "no more", at("2026-11-27T12:02")),
        ErrorInfo("count", 4, "the end", at("2026-11-27T12:03")),
        *(ErrorInfo("split", number, "\x1b[2J", at("2026-11-27T12:04")) for number in range(8)),
    ]
    components = {"count": ComponentInfo("count", "bolt", 1, errors=tuple(errors))}
    console = Console(file=io.StringIO(), width=120)
    print_summary(console, TopologyInfo("words", "FAILED", 1.0, components=components, error="the end"))
    text = written(console)
    assert text[text.index("x 1,200") :].splitlines()[:6] == [
        "x 1,200, first 2026-11-26 23:59:00, last 2026-11-27 12:01:00  error of count, task 4",
        "    KeyError: 1",
        "    input: ('a', 1)",
        "    in /home/u/jobs.py, line 12",
        "2026-11-27 12:02:00  error of count",
        "    no more",
    ]
    assert "the end" not in text, "it is told as the reason"
    assert "\x1b" not in text
    fewer = {"count": ComponentInfo("count", "bolt", 1, errors=tuple(errors * 2))}
    print_summary(console, TopologyInfo("words", "FAILED", 1.0, components=fewer))
    assert "the last 10 of 22 errors:" in written(console)


def test_status_and_errors_say_what_was_executed_how_often_and_when() -> None:
    error = {
        "error": 'component "count" (task 4) failed in execute: KeyError: 1',
        "errorTime": int(at("2026-11-27T12:01")),
        "errorHost": "h",
        "errorPort": 6700,
        "task": 4,
        "trace": "",
        "input": "('a', 1)",
        "count": 10,
        "firstTime": int(at("2026-11-27T11:59")),
        "beforeRestart": True,
    }
    bolt = {
        "boltId": "count",
        "tasks": 1,
        **COUNTS,
        "lastError": error["error"],
        "errorTime": error["errorTime"],
        "errorCount": 10,
        "errorFirstTime": error["firstTime"],
        "errorBeforeRestart": True,
        "errorInput": error["input"],
    }
    page = status_page(
        schedulerInfo="",
        failure="the disk is full",
        systemErrors={"__system": [{**error, "error": "the disk is full", "input": "", "count": 1}]},
        bolts=[bolt],
    )
    often = "x 10, first 2026-11-27 11:59:00, last 12:01:00, before the last restart"
    console = Console(file=io.StringIO(), width=200)
    status.show(console, page)
    lines = written(console).splitlines()
    assert f"last error of count: {error['error']}; input: ('a', 1) ({often})" in lines
    assert "failure: the disk is full (2026-11-27 12:01:00, before the last restart)" in lines
    console = Console(file=io.StringIO(), width=200)
    errors_command.show(console, {"count": [error]})
    assert written(console).splitlines() == [
        f"{often}  count, task 4, on h:6700",
        f"    {error['error']}",
        "    input: ('a', 1)",
    ]
    for name in ("input", "count", "firstTime", "beforeRestart"):
        del error[name]
    errors_command.show(console, {"count": [error]})
    assert written(console).splitlines()[3] == "2026-11-27 12:01:00  count, task 4, on h:6700", "as Storm's REST has it"
