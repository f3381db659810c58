"""Messages between modules: a tuple with a payload and headers."""

from __future__ import annotations

from typing import Final

FIELDS: Final = ("payload", "headers")
"""The fields of every tuple between modules."""
