"""Writes what was measured into blocks of `docs/streams.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.suite import ROOT

PAGE: Final = ROOT / "docs" / "streams.md"


def write(kind: str, command: str, columns: Sequence[Mapping[str, Any]], page: Path = PAGE) -> None:
    """Replaces the block of a kind of measurement.

    Args:
        kind: names the block.
        command: by which it was measured.
        columns: for each column of the table a map of the same names.
        page: that has the block.

    Raises:
        ValueError: the page has no such block.
    """
    begin, end = f"<!-- streams {kind}: begin -->", f"<!-- streams {kind}: end -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{page} has no lines {begin} and {end}")
    head, tail = text[: text.index(begin)], text[text.index(end) :]
    rows = [[name.replace("_", " "), *(_shown(column[name]) for column in columns)] for name in columns[0]]
    first, *rest = rows
    table = [_line(first), _line(["---"] * len(first)), *map(_line, rest)]
    lines = [begin, f"<!-- Written by `{command}`. Don't edit. -->", "", *table, "", ""]
    page.write_text(head + "\n".join(lines) + tail)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
