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
