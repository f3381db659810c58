"""The libraries of the cluster and of the pages, which are optional."""

from __future__ import annotations

import importlib.util
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra

_LIBRARIES: Final = ("httpx", "kazoo", "msgspec", "starlette", "uvicorn")
_PAGES: Final = ("jinja2", "msgspec", "starlette", "uvicorn")


def need_libraries() -> None:
    """Checks that all of them are installed.

    Raises:
        SetupError: one is missing.
    """
    missing = [name for name in _LIBRARIES if not _is_there(name)]
    if missing:
        raise SetupError(needs_extra("this command", "cluster", *missing))


def has_pages() -> bool:
    """Returns whether the libraries of the pages are installed."""
    return all(map(_is_there, _PAGES))


def need_pages(what: str) -> None:
    """Checks that the libraries of the pages are installed.

    Args:
        what: what needs them.

    Raises:
        SetupError: one is missing.
    """
    missing = [name for name in _PAGES if not _is_there(name)]
    if missing:
        raise SetupError(needs_extra(what, "ui", *missing))


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # an import of it was blocked
        return False
