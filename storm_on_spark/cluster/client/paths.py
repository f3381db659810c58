"""The parts of a URL's path."""

from __future__ import annotations

import getpass
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


def has_port(seed: str) -> bool:
    """Returns whether the address of a Nimbus has a port.

    Example:
        >>> [has_port(seed) for seed in ("nimbus-1", "nimbus-1:6627", "::1", "[::1]:6627")]
        [False, True, False, True]
    """
    host, _, port = seed.rpartition(":")
    return bool(host) and port.isdecimal() and (":" not in host or host.endswith("]"))


def wait_part(wait_secs: float | None) -> str:
    """Returns a wait as part of a path; None for the topology's message timeout.

    Example:
        >>> wait_part(None), wait_part(2)
        ('default', '2.000')
    """
    return "default" if wait_secs is None else f"{wait_secs:.3f}"


def own_name() -> str:
    """Returns the user of this process; empty where it has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
