"""What a bolt has done to its key-value state, noted so that it can be undone after a poison tuple."""

from __future__ import annotations

from typing import Any, NamedTuple


class Copied(NamedTuple):
    """A value as it was when the bolt got hold of it."""

    data: bytes


class Step(NamedTuple):
    """What the bolt has done to an entry."""

    key: Any
    before: Any
    """The value before, `GONE` if none, or a copy."""
    changed: bool
    """Whether it had been changed already since the last commit."""
