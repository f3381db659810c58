"""Writes measurements into blocks of `docs/streams.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.suite import ROOT
from lab.suite.pages import put_between
from lab.suite.tables import Table

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
    first, *rest = [[name.replace("_", " "), *(_shown(column[name]) for column in columns)] for name in columns[0]]
    lines = [f"<!-- Written by `{command}`. Don't edit. -->", "", *Table("", first, rest).markdown(), "", ""]
    put_between(page, f"<!-- streams {kind}: begin -->", f"<!-- streams {kind}: end -->", "\n".join(lines))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
