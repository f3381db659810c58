"""`--watch`."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cli.client.asking import Given
from storm_on_spark.cli.client.watching import watched


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def look(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    asked: list[int] = []

    def ask() -> int:
        asked.append(1)
        return len(asked)

    def sleep(seconds: float) -> None:
        if len(asked) == 3:
            raise KeyboardInterrupt

    def show(console: Any, answer: int) -> None:
        console.print(f"answer {answer}")

    watched(Given({}), ask, show, sleep=sleep)
    return screen.getvalue()


def test_without_a_terminal_answers_come_below_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(monkeypatch, terminal=False).split("\n") == ["answer 1", "", "answer 2", "", "answer 3", "", ""]


def test_on_a_terminal_it_redraws_and_ctrl_c_leaves_it_right(monkeypatch: pytest.MonkeyPatch) -> None:
    text = look(monkeypatch, terminal=True)
    assert [f"answer {number}" in text for number in (1, 2, 3)] == [True] * 3
    assert "\x1b[2K" in text, "nothing was redrawn"
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is still hidden"
    assert text.endswith("\n\x1b[?25h") or text.rstrip("\x1b[?25h").endswith("\n")


def test_a_document_is_not_watched() -> None:
    with pytest.raises(ConfigError, match="--json"):
        watched(Given({}, json=True), lambda: 1, lambda screen, page: None)
