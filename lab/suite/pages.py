"""The generated part of a page: what stands between two markers."""

from __future__ import annotations

from pathlib import Path


def put_between(page: Path, begin: str, end: str, generated: str) -> None:
    """Puts a generated text between the markers of a page.

    Args:
        page: the page.
        begin: the line before it.
        end: the line behind it.
        generated: the text, with the newline that ends it.

    Raises:
        ValueError: the page has no markers.
    """
    before, found, rest = page.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} needs the lines {begin} and {end}, with the tables to go between them")
    page.write_text(f"{before}{begin}\n{generated}{end}{after}", "utf-8")
