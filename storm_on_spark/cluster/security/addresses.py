"""Addresses that other hosts can reach, and those that they cannot."""

from __future__ import annotations

import ipaddress


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
