"""How the text of a stream continues."""

from __future__ import annotations

import pytest

from storm_on_spark.xd.admin.completions import completions, job_completions
from storm_on_spark.xd.modules.local_registry import LocalRegistry


@pytest.mark.parametrize(
    ("start", "some"),
    [
        ("", "time"),
        ("", "tap:stream:"),
        ("t", "time"),
        ("ti", "time"),
        ("ticktock = ti", "ticktock = time"),
        ("tap:st", "tap:stream:"),
        ("tap:stream:o", "tap:stream:orders >"),
        ("time", "time --fixedDelay="),
        ("time ", "time --fixedDelay="),
        ("time -", "time --fixedDelay="),
        ("time --f", "time --fixedDelay="),
        ("time --fixedDelay=1 --f", "time --fixedDelay=1 --format="),
        ("time | ", "time | log"),
        ("time |", "time | log"),
        ("time |lo", "time |log"),
        ("time | fi", "time | filter"),
        ("time | one:fi", "time | one:filter"),
        ("time | log --level=W", "time | log --level=WARN"),
        ("file --dir=in --once=t", "file --dir=in --once=true"),
        ("time | filter --expression='a | b' | lo", "time | filter --expression='a | b' | log"),
        ("time >", "time > queue:"),
        ("time > t", "time > topic:"),
        ("queue:orders > lo", "queue:orders > log"),
        ("tap:stream:orders > fi", "tap:stream:orders > filter"),
    ],
)
def test_a_text_goes_on(start: str, some: str) -> None:
    assert some in completions(start, LocalRegistry(), ["orders"])


@pytest.mark.parametrize(
    ("start", "none"),
    [
        ("", "log"),
        ("time | ", "time | time"),
        ("time --fixedDelay=1 ", "time --fixedDelay=1 --fixedDelay="),
        ("time | log", "time | log"),
        ("time --fixedDelay=1 | log ", "time --fixedDelay=1 | log --fixedDelay="),
    ],
)
def test_only_what_fits_is_proposed(start: str, none: str) -> None:
    assert none not in completions(start, LocalRegistry())


@pytest.mark.parametrize("start", ["time | filter --expression='pay", "time --fixedDelay=", "nothing --x", "time x"])
def test_only_the_user_knows_how_these_go_on(start: str) -> None:
    assert completions(start, LocalRegistry()) == ()


@pytest.mark.parametrize(
    ("start", "some"),
    [
        ("", "script"),
        ("nightly = sc", "nightly = script"),
        ("script --loc", "script --location="),
        ("script --location=a || ", "script --location=a || timestampfile"),
        ("script --location='a || b' ||sp", "script --location='a || b' ||sparkapp"),
        ("<script & mine:ti", "<script & mine:timestampfile"),
        (
            "<script & timestampfile> || timestampfile --append=",
            "<script & timestampfile> || timestampfile --append=true",
        ),
        ("script |", "script | FAILED = "),
        ("script | FA", "script | FAILED = "),
        ("script | FAILED = ti", "script | FAILED = timestampfile"),
        ("script | FAILED = $", "script | FAILED = $END"),
        ("script | FAILED = timestampfile --f", "script | FAILED = timestampfile --fileName="),
        ("script | FAILED = $END || ti", "script | FAILED = $END || timestampfile"),
    ],
)
def test_the_text_of_a_job_goes_on(start: str, some: str) -> None:
    assert some in job_completions(start, LocalRegistry())


@pytest.mark.parametrize("start", ["<script> ti", "script | FAILED = $x", "script --location='a", "log", "script & 'x"])
def test_nothing_is_proposed_where_no_job_goes_on(start: str) -> None:
    assert job_completions(start, LocalRegistry()) == ()


def test_options_that_have_to_be_given_come_first() -> None:
    found = completions("time | jdbc ", LocalRegistry())
    assert found[0] == "time | jdbc --table="


def test_composed_modules_have_options_of_those_inside() -> None:
    registry = LocalRegistry()
    registry.compose("words", "splitter | filter")
    assert "time | words" in completions("time | wo", registry)
    assert "time | words --filter.expression=" in completions("time | words --fi", registry)
