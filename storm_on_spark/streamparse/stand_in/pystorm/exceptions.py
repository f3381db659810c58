"""The exceptions of pystorm."""

from __future__ import annotations


class StormWentAwayError(Exception):
    """The other end of the pipe is closed."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")
