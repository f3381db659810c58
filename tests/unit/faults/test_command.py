"""`python -m lab.faults`, as far as it gets without a topology."""

from __future__ import annotations

import sys

import pytest

from lab.faults.__main__ import main


def test_a_table_of_another_load_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["lab.faults", "--only", "host", "--messages", "5000", "--docs"])
    assert main() == 2
    assert "reliability.md has rows of another load than these: 5,000 unique messages" in capsys.readouterr().err


def test_rows_that_say_nothing_about_real_time_are_not_in_its_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = []
    for options in ([], ["--profile", "realtime"]):
        monkeypatch.setattr(sys, "argv", ["lab.faults", "--list", *options])
        assert main() == 0
        listed.append({line.split()[0] for line in capsys.readouterr().out.splitlines()})
    assert listed[0] - listed[1] == {"windows"}
