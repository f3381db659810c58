"""The generated part of a page, between two markers."""

from __future__ import annotations

from pathlib import Path


def put_between(page: Path, begin: str, end: str, generated: str) -> None:
    """Puts a generated text between the markers of a page.

    Args:
        page: the page.
        begin: the line before it.
        end: the line after it.
        generated: the text, with the newline that ends it.

    Raises:
        ValueError: the page has no markers.
    """
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} needs the lines {begin} and {end}, with the tables to go between them")
    page.write_text(f"{before}{begin}\n{generated}{end}{after}", "utf-8")


def rows_between(page: str, begin: str, end: str) -> dict[str, list[str]]:
    r"""Returns the rows of the tables between the markers of a page, by their first cell.

    Example:
        >>> rows_between("<a>\n| a | b |\n|---|--:|\n| one | 1 |\n</a>\n| two | 2 |", "<a>", "</a>")
        {'a': ['a', 'b'], 'one': ['one', '1']}
    """
    between = page.partition(begin)[2].partition(end)[0]
    rows = [line[2:-2].split(" | ") for line in between.splitlines() if line.startswith("| ") and line.endswith(" |")]
    return {row[0]: row for row in rows}
