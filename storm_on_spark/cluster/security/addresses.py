"""Addresses that other hosts can reach, and those that they cannot."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def asked_host(header: str) -> str:
    """Returns the host in a request's header `Host`; empty if there is none.

    Example:
        >>> [asked_host(header) for header in ("localhost:8080", "[::1]:8080", "", "[", "a b")]
        ['localhost', '::1', '', '', 'a b']
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Returns whether only this host can reach an address.

    Example:
        >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "nimbus-1", "")]
        [True, True, True, False, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
