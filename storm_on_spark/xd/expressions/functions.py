"""The functions that an expression may call, and the limits of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MAXIMUM_TEXT: Final = 1_000_000
"""Most characters of a text that an expression makes."""


def _length(of: Any) -> int:
    return len(of)


def _contains(of: Any, other: Any) -> bool:
    return other in of


def _replace(of: str, old: str, new: str) -> str:
    if len(of) + of.count(old) * len(new) > MAXIMUM_TEXT:
        raise ValueError(f"expected a text of at most {MAXIMUM_TEXT} characters")
    return of.replace(old, new)


def _substring(of: str, begin: int, end: int | None = None) -> str:
    last = len(of) if end is None else end
    if not 0 <= begin <= last <= len(of):
        raise ValueError(f"expected 0 <= begin <= end <= {len(of)}, the length of the text")
    return of[begin:last]


def _split(of: str, separator: str) -> list[str]:
    return of.split(separator)


_TEXT = (str,)
_SIZED = (str, list, dict)
_INTEGER = (int,)

FUNCTIONS: Final[dict[str, tuple[tuple[type, ...], tuple[tuple[type, ...], ...], int, Callable[..., Any]]]] = {
    "length": (_TEXT, (), 0, _length),
    "size": ((list, dict), (), 0, _length),
    "isEmpty": (_SIZED, (), 0, lambda of: not of),
    "contains": (_SIZED, ((str, int, float, bool),), 1, _contains),
    "startsWith": (_TEXT, (_TEXT,), 1, str.startswith),
    "endsWith": (_TEXT, (_TEXT,), 1, str.endswith),
    "indexOf": (_TEXT, (_TEXT,), 1, str.find),
    "toUpperCase": (_TEXT, (), 0, str.upper),
    "toLowerCase": (_TEXT, (), 0, str.lower),
    "trim": (_TEXT, (), 0, str.strip),
    "replace": (_TEXT, (_TEXT, _TEXT), 2, _replace),
    "substring": (_TEXT, (_INTEGER, _INTEGER), 1, _substring),
    "split": (_TEXT, (_TEXT,), 1, _split),
}
"""Name -> types of the value it is called on, types of each argument, how many of these are needed, the function."""
