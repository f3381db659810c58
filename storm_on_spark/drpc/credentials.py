"""The login over Thrift of those who have the cluster's token: derived from it, so that the token stays at home."""

from __future__ import annotations

from typing import Final

from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.cluster.security.tokens import derived, mac

_PURPOSE: Final = "drpc"


def login_of(token: str) -> Login:
    """Returns the name and the password that belong to a token.

    Example:
        >>> login = login_of("0123456789abcdef")
        >>> login.name == login_of("fedcba9876543210").name, len(login.secret)
        (False, 64)
    """
    key = derived(token, _PURPOSE)
    return Login(f"token-{mac(key, 'name')[:16]}", mac(key, "password"))
