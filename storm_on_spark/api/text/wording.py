"""Helpers for the text of error messages."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from storm_on_spark.api.text.printable import is_one_line, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_COMPARED = 200
"""The longest name, in characters, for which a similar one is searched."""


def name_fault(value: object) -> str | None:
    r"""Returns why `value` can't be an id or the name of a field, as the end of a sentence; None if it can.

    Example:
        >>> name_fault("count"), name_fault("")
        (None, "must be a string that is not empty, not '' (str)")
        >>> name_fault("a\x1b[2J")
        "must have no control characters, not 'a\\x1b[2J' (str)"
    """
    if not isinstance(value, str) or value == "":
        return f"must be a string that is not empty, not {kind_of(value)}"
    return None if is_one_line(value) else f"must have no control characters, not {one_line(kind_of(value))}"


def quoted(names: Iterable[object]) -> str:
    """Returns names as messages show them.

    Example:
        >>> quoted(["word", "count"]), quoted([])
        ('"word", "count"', 'none')
    """
    return ", ".join(f'"{name}"' for name in names) or "none"


def did_you_mean(name: object, valid: Iterable[str]) -> str:
    """Returns ` Did you mean "x"?` (with the leading blank) if a valid name is close to `name`, else nothing.

    Example:
        >>> did_you_mean("wrod", ["word", "count"])
        ' Did you mean "word"?'
        >>> did_you_mean("x", ["word", "count"])
        ''
    """
    text = str(name)
    # Comparing two texts takes time proportional to the product of their lengths.
    close = difflib.get_close_matches(text, list(valid), n=1) if len(text) <= _MOST_COMPARED else []
    return f' Did you mean "{close[0]}"?' if close else ""


def other_format(
    what: str,
    given: object,
    expected: int,
    instead: str = "start the topology with the release that wrote it, or with another checkpoint directory",
) -> str:
    """Returns the sentence that refuses a format of another version.

    Args:
        what: the thing with the format, and where it is.
        given: its version.
        expected: the only version that this release reads.
        instead: the remedy.

    Example:
        >>> other_format("job.json", 3, 1, "copy the whole folder again")
        'job.json has format version 3; this release reads 1: copy the whole folder again'
    """
    return f"{what} has format version {given}; this release reads {expected}: {instead}"


def short_repr(value: object, limit: int = 80) -> str:
    """Returns `repr(value)`, cut so that a message stays readable; never raises.

    Example:
        >>> short_repr(list(range(1000)), limit=20)
        '[0, 1, 2, 3, 4, 5...'
    """
    try:
        text = repr(value)
    except Exception:  # a user's own __repr__ must not hide the error that is being reported
        text = f"<{type(value).__qualname__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def kind_of(value: object) -> str:
    """Describes `value` with its type, for a message.

    Example:
        >>> kind_of("3"), kind_of(None)
        ("'3' (str)", 'None')
    """
    return "None" if value is None else f"{short_repr(value)} ({type(value).__qualname__})"


def milliseconds(value: float) -> str:
    """Returns a latency in milliseconds, with a digit after the point where that is of use.

    Example:
        >>> milliseconds(0.849), milliseconds(1234.5)
        ('0.8 ms', '1,234 ms')
    """
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
