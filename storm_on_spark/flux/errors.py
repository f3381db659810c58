"""Errors in Flux files, with the place and a caret."""

from __future__ import annotations

from dataclasses import dataclass

from storm_on_spark.launch.loader import LoadError

_WIDTH = 120


@dataclass(frozen=True)
class Source:
    """The original text of a file, for messages."""

    name: str
    lines: tuple[str, ...] = ()
    """The original lines, without the values of properties and of the environment, which may be secrets."""


@dataclass(frozen=True)
class Place:
    """A position in a file; line and column count from 0."""

    source: Source
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line + 1}:{self.column + 1}"

    def caret(self) -> str:
        """Returns the line with a caret below the column; nothing if the file has no such line.

        >>> print(Place(Source("a.yaml", ("spouts:", "  - id: lines")), 1, 4).caret())
          - id: lines
            ^
        """
        if self.line >= len(self.source.lines):
            return ""
        line = self.source.lines[self.line]
        # A long line is cut on both sides of the column.
        start = max(0, self.column - _WIDTH // 2) if len(line) > _WIDTH else 0
        shown = "".join(char if char.isprintable() else " " for char in line[start : start + _WIDTH])
        return f"{shown}\n{' ' * (self.column - start)}^"


class FluxError(LoadError):
    """A Flux file is wrong.

    Args:
        message: what was given and what is allowed.
        place: in the file, if it is known.

    Example:
        >>> place = Place(Source("a.yaml", ("spouts: 3",)), 0, 8)
        >>> print(FluxError("spouts must be a list, not 3", place))
        a.yaml:1:9: spouts must be a list, not 3
        spouts: 3
                ^
    """

    def __init__(self, message: str, place: Place | None = None) -> None:
        caret = "" if place is None else place.caret()
        text = message if place is None else f"{place}: {message}"
        super().__init__(f"{text}\n{caret}" if caret else text)
        self.message = message
        self.place = place

    def __reduce__(self) -> tuple[type[FluxError], tuple[str, Place | None]]:
        return FluxError, (self.message, self.place)
