"""Tables as Spring XD's shell prints them: two spaces before each column, and a line below the headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from storm_on_spark.api.text.printable import one_line


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table as text; no cell is cut.

    Example:
        >>> print(table(["Module", "Container Id"], [["ticktock.sink.log.1", "2ebb"]]))
          Module               Container Id
          -------------------  ------------
          ticktock.sink.log.1  2ebb
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headings, *shown, strict=True)]
    lines = [headings, ["-" * width for width in widths], *shown]
    return "\n".join(
        "".join(f"  {cell}{' ' * (width - cell_len(cell))}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def braced(values: Mapping[str, str]) -> str:
    """Returns a map as Java prints one.

    Example:
        >>> braced({"count": "1", "sequence": "1"})
        '{count=1, sequence=1}'
    """
    return "{" + ", ".join(f"{name}={value}" for name, value in values.items()) + "}"
