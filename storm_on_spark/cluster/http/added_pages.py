"""What adds pages for browsers to a daemon's REST interface."""

from __future__ import annotations

from typing import Protocol

from starlette.types import ASGIApp


class AddedPages(Protocol):
    """An interface with pages."""

    @property
    def app(self) -> ASGIApp:
        """The application with the pages, in the place of that without."""

    def close(self) -> None:
        """Ends what is open."""
