"""Patterns of dates as Java's `SimpleDateFormat` has them, and dates in that form."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_LETTERS: Final = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M",
    "ss": "%S", "a": "%p", "EEE": "%a", "EEEE": "%A", "Z": "%z",
}  # fmt: skip
_MAXIMUM_LENGTH: Final = 200


def check_pattern(pattern: str) -> None:
    """Checks a pattern.

    Raises:
        ValueError: it has letters that are not supported, or an open quote.
    """
    format_date(pattern, datetime(2000, 1, 1))  # noqa: DTZ001 # any date


def format_date(pattern: str, when: datetime) -> str:
    """Returns a date in the form of a pattern.

    Raises:
        ValueError: the pattern has letters that are not supported, or an open quote.

    Example:
        >>> format_date("yyyy-MM-dd'T'HH:mm:ss.SSS", datetime(2014, 7, 14, 10, 32, 33, 5000))
        '2014-07-14T10:32:33.005'
    """
    if len(pattern) > _MAXIMUM_LENGTH:
        raise ValueError(f"Expected a pattern of at most {_MAXIMUM_LENGTH} characters, got {len(pattern)}")
    found: list[str] = []
    at = 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            raise ValueError(f"Expected a closing ' in the pattern {pattern!r}")
        text, quoted = part[0], part[1]
        if quoted is not None:
            found.append(quoted.replace("''", "'") or "'")
        elif part[2] is None:
            found.append(text)
        elif text == "SSS":
            found.append(f"{when.microsecond // 1000:03}")
        elif text in _LETTERS:
            found.append(when.strftime(_LETTERS[text]))
        else:
            raise ValueError(f"Expected one of {', '.join(_LETTERS)}, SSS in the pattern, got {text!r:.50}")
        at = part.end()
    return "".join(found)
