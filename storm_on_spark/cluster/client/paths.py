"""The parts of a URL's path."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

_DOTS: Final = (".", "..")


def path_part(text: str) -> str:
    """Returns `text` as one part of a path, whatever its characters.

    A part of one or two dots is encoded, too: in `/streams/deployments/.` clients and proxies see the list of all
    deployments (RFC 3986, 5.2.4).

    Example:
        >>> path_part("a/b"), path_part("."), path_part("1.0")
        ('a%2Fb', '%2E', '1.0')
    """
    return text.replace(".", "%2E") if text in _DOTS else quote(text, safe="")
