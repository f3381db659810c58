"""Files of properties for `--filter`, in Java's format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.flux.errors import FluxError, Place, Source

MAX_BYTES = 1 << 20
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r\n|\r|\n")
"""The only characters at which Java ends lines."""
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_text(path: Path, what: str) -> str:
    """Returns the text of a file.

    Raises:
        FluxError: it can't be read, is not UTF-8, or is larger than 1 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FluxError(f"{what} {path} can't be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise FluxError(f"{path} is larger than {MAX_BYTES:,} bytes: too large for {what}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FluxError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def read_properties(path: Path) -> dict[str, str]:
    """Returns the properties in a file.

    Raises:
        FluxError: the file can't be read, or an escape in it is wrong.
    """
    return parse_properties(read_text(path, "a file of properties,"), str(path))


def parse_properties(text: str, name: str = "properties") -> dict[str, str]:
    r"""Returns the properties in a text of Java's format.

    Comments begin with `#` or `!`; a key ends at `=`, `:` or a blank; a backslash at the end of a line continues it.

    Raises:
        FluxError: a Unicode escape is wrong.

    Example:
        >>> parse_properties("# a comment\nname = word count\nhosts: a,\\\n  b\nempty\n")
        {'name': 'word count', 'hosts': 'a,b', 'empty': ''}
    """
    lines = _LINE_END.split(text)
    source = Source(name, tuple(lines))
    found: dict[str, str] = {}
    for number, line in _logical(lines):
        match = _KEY.match(line)
        assert match is not None
        place = Place(source, number, 0)
        found[_plain(match[1], place)] = _plain(match[2], place)
    return found


def _logical(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yields lines with their continuations, without comments, and the number of each one's first."""
    waiting = iter(enumerate(lines))
    for number, line in waiting:
        whole = line.lstrip(" \t\f")
        if not whole or whole[0] in "#!":
            continue
        parts = [whole]
        while len(parts[-1]) - len(parts[-1].rstrip("\\")) & 1:
            _, following = next(waiting, (0, ""))
            parts[-1:] = parts[-1][:-1], following.lstrip(" \t\f")
        yield number, "".join(parts)


def _plain(text: str, place: Place) -> str:
    pieces: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\" or position + 1 == len(text):
            pieces.append(char)
            position += 1
            continue
        escaped = text[position + 1]
        position += 2
        if escaped == "u":
            digits = text[position : position + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise FluxError(f"\\u must be followed by four hexadecimal digits, not {digits!r}", place)
            pieces.append(chr(int(digits, 16)))
            position += 4
        else:
            pieces.append(_ESCAPES.get(escaped, escaped))
    return "".join(pieces)
