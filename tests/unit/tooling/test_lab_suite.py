"""What the suites of scenarios share: which are played, what is said of them, and which processes are theirs."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from lab.suite import command
from lab.suite.processes import Marked, wait_for
from lab.suite.scenario import Result, Scenario, ScenarioError, judging, verdict

SCENARIOS = [Scenario(name, name.upper(), lambda run, times: None) for name in ("one", "two", "short")]


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ([], ["one", "two"]),
        (["--short"], ["short"]),
        (["--only", "two", "--only", "short"], ["two", "short"]),
        (["--short", "--only", "one"], ["one"]),
    ],
)
def test_what_is_asked_for_goes_before_the_short_form_and_that_before_all(
    arguments: list[str], chosen: list[str]
) -> None:
    options = command.options_of("lab", "Nothing.", SCENARIOS, times=3).parse_args(arguments)

    assert [scenario.name for scenario in command.choose(SCENARIOS, options, ["short"], ["one", "two"])] == chosen
    assert options.times == 3


def test_the_folder_of_a_scenario_stays_if_it_failed_and_the_problem_is_told(tmp_path: Path) -> None:
    good, bad = Result("one", "ONE"), Result("two", "TWO")
    for result in (good, bad):
        (tmp_path / result.scenario).mkdir()
        with judging(result, tmp_path / result.scenario):
            if result is bad:
                result.problems.append("3 messages were never acked")
    out = io.StringIO()
    console = Console(width=500, file=out)
    for result in (good, bad):
        command.tell(console, result, verdict([result]), tmp_path / result.scenario)
    said = out.getvalue()

    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["two"]
    assert said.count("passed") == said.count("FAILED") == 1
    assert "3 messages were never acked" in said
    assert str(tmp_path / "two") in said
    assert str(tmp_path / "one") not in said


def test_a_skipped_scenario_is_told_as_such_and_a_failure_of_any_round_counts() -> None:
    assert verdict([Result("one", "ONE", skipped="needs a C compiler")]) == "not run: needs a C compiler"
    assert verdict([Result("one", "ONE"), Result("one", "ONE", ["lost"])]) == "FAILED"


def test_a_mark_finds_what_a_process_has_started_and_nothing_else() -> None:
    marked, others = Marked("LAB_TEST"), Marked("LAB_OTHER")
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0).wait()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **marked.environment("host")}, stdin=subprocess.PIPE
    )
    try:
        wait_for(lambda: len(marked.find("host")) == 2, "the process and its child run")
        assert process.pid in marked.find()
        assert os.getpid() not in marked.find()
        assert marked.find("other") == others.find() == {}
        assert marked.signal(signal.SIGKILL, "host") == 2
    finally:
        process.kill()
        process.communicate()
    wait_for(lambda: not marked.find(), "both are gone")


def test_what_never_comes_is_an_error_that_names_it() -> None:
    with pytest.raises(ScenarioError, match=r"not within 0.01 s: a leader"):
        wait_for(lambda: None, "a leader", timeout=0.01)
