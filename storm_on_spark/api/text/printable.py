"""Makes text from outside safe for a terminal: characters that move the cursor or change direction become escapes.

Tuples, errors of user code and answers of servers may contain escape sequences. A terminal would obey them: clear the
screen, rename its window, hide the rest.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 without tab and line feed, DEL, C1, characters that change the direction of text, Unicode's line breaks, and lone
surrogates, which can't be written."""


def printable(text: str) -> str:
    r"""Returns a text that is safe to print: line feeds and tabs stay.

    Example:
        >>> printable("one\n\ttwo \x1b[2J\x9b\u202e")
        'one\n\ttwo \\x1b[2J\\x9b\\u202e'
    """
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""Returns a text that is safe to print, as one line.

    Example:
        >>> one_line("é\n\x1b"), one_line("a\tb")
        ('é\\n\\x1b', 'a\\tb')
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def is_one_line(text: str) -> bool:
    r"""Whether a text, such as a name, is safe to print as it is.

    Example:
        >>> is_one_line("größe, x"), is_one_line("a\x1b"), is_one_line("a\n")
        (True, False, False)
    """
    return one_line(text) == text


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
