"""Splits lines of a shell into words."""

from __future__ import annotations

import re
from typing import Final

#: Parts of words. `shlex` reads nearly the same language, but takes minutes for a line of a megabyte.
_PART: Final = re.compile(
    r"""(?P<space>\s+)|'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|\\(?P<escaped>.)|(?P<plain>[^\s'"\\]+)""",
    re.DOTALL,
)
_ESCAPED: Final = {"single": re.compile(r"\\(['\\])"), "double": re.compile(r'\\(["\\])')}


def split_line(line: str) -> list[str]:
    """Returns the words of a line, as in a POSIX shell.

    Unlike there, a backslash also escapes a quote or a backslash within single quotes, as in Spring XD's shell.

    Raises:
        ValueError: a quote has no end, or nothing follows a backslash.

    Example:
        >>> split_line("stream create a --definition 'time | log'")
        ['stream', 'create', 'a', '--definition', 'time | log']
    """
    words: list[list[str]] = []
    at, begin = 0, True
    while at < len(line):
        match = _PART.match(line, at)
        if match is None:
            what = "nothing follows the backslash" if line[at] == "\\" else f"the quote {line[at]} has no end"
            raise ValueError(f"{what} (pos {at})")
        at = match.end()
        if match["space"] is not None:
            begin = True
            continue
        if begin:
            words.append([])
            begin = False
        kind = match.lastgroup or ""
        if kind in _ESCAPED:
            words[-1].append(_ESCAPED[kind].sub(r"\1", match[kind]))
        else:
            words[-1].append(match[kind])
    return ["".join(parts) for parts in words]
