"""Lines of files and protocols."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    r"""Returns the lines of a text that a program or a person wrote into a file, without line ends.

    A line ends at a line feed, with or without a carriage return before it, and nowhere else. `str.splitlines` breaks
    lines at U+2028, U+2029, U+0085 and more, which JSON and names may hold.

    Example:
        >>> lines_of("a\u2028b\r\nc\n\n")
        ['a\u2028b', 'c', '']
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]
