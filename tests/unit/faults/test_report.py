"""The table of faults in the documentation: what was played now, and what was played before."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.faults.harness import Result, check_recovery
from lab.faults.report import write_docs
from lab.faults.run import Injection
from lab.faults.scenarios import Scenario
from lab.load.topology import Load
from lab.suite.pages import rows_between

LOAD = Load(messages=4000, seconds=16)
TITLES = ["one", "two", "three"]
PARTS = [[], ["--storage", "s3"], ["--profile", "realtime"]]


def page_of(folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in names()))
    return page


def names() -> list[str]:
    return ["-".join(["faults", *where[1::2]]) for where in PARTS]


def first_cells(page: Path, name: str) -> list[str]:
    rows = rows_between(page.read_text(), f"<!-- {name}: begin -->", f"<!-- {name}: end -->")
    return [cell for cell in rows if cell != "fault"]


def test_what_was_played_is_new_and_the_rest_stays(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    write_docs([Result("1", "one"), Result("3", "three")], LOAD, page, [], TITLES)
    broken = Result("2", "two")
    broken.problems.append("it broke")
    write_docs([broken], LOAD, page, [], TITLES)
    assert first_cells(page, "faults") == TITLES
    assert page.read_text().count("FAILED") == 1


def test_what_can_not_be_played_here_is_left_out_of_the_page_or_stays_as_it_was(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    write_docs([Result("1", "one"), Result("2", "two", skipped="needs root")], LOAD, page, [], TITLES)
    assert first_cells(page, "faults") == ["one"]
    before = page.read_text()
    write_docs([Result("1", "one", skipped="needs root")], LOAD, page, [], TITLES)
    assert page.read_text() == before


@pytest.mark.parametrize(("where", "name"), list(zip(PARTS, names(), strict=True)))
def test_a_page_has_a_table_for_each_storage_and_profile(tmp_path: Path, where: list[str], name: str) -> None:
    page = page_of(tmp_path)
    write_docs([Result("1", "one")], LOAD, page, where, TITLES)
    assert {each: first_cells(page, each) for each in names()} == {
        each: ["one"] if each == name else [] for each in names()
    }


def test_rows_of_another_load_are_not_mixed(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    write_docs([Result("1", "one")], LOAD, page, [], TITLES)
    before = page.read_text()
    with pytest.raises(ValueError, match="has rows of another load than these: 5,000 unique messages"):
        write_docs([Result("2", "two")], Load(messages=5000, seconds=16), page, [], TITLES)
    assert page.read_text() == before


def test_a_recovery_that_patience_allowed_is_said_to_be_late(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    late, quick = Result("1", "one"), Result("2", "two")
    late.injections = [Injection("kill", "dead", 0, 40.0)]
    quick.injections = [Injection("kill", "dead", 0, 20.0)]
    scenario = Scenario("1", "one", lambda run, times: None, limit_secs=25.0)
    for result in (late, quick):
        check_recovery(scenario, result, 2.0)
        assert not result.problems
    write_docs([late, quick], LOAD, page, [], TITLES)
    assert "| passed, later than 25 s |" in page.read_text()
    assert "| 20.0 | 20.0 | passed |" in page.read_text()
    check_recovery(scenario, late, 1.5)
    assert late.problems == ["kill: progress resumed after 40.0 s, not within 38 s"]


def test_before_sparks_first_micro_batch_what_dies_comes_back_as_soon_as_a_driver_that_starts() -> None:
    result = Result("1", "one")
    result.injections = [Injection("kill", "dead", 0, 20.0, cold=True)]
    check_recovery(Scenario("1", "one", lambda run, times: None, limit_secs=10.0), result, 1.0)
    assert (result.problems, result.late) == ([], None)


@pytest.mark.parametrize(
    ("load", "where", "options"),
    [
        (Load(), [], "--docs"),
        (Load(), ["--storage", "s3"], '"--docs --storage s3"'),
        (LOAD, [], '"--docs --messages 4000 --seconds 16"'),
    ],
)
def test_a_page_says_how_its_table_was_written(tmp_path: Path, load: Load, where: list[str], options: str) -> None:
    page = page_of(tmp_path)
    write_docs([Result("1", "one")], load, page, where, TITLES)
    assert f"Written by `make faults FAULTS_ARGS={options}`." in page.read_text()
