"""The names of storm-kafka-client's methods: what they are here, or why there is no such method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar


class StormNames:
    """Base of a class that is told in Storm's words: a method of Storm's that it lacks is an error with a reason.

    Example:
        >>> class Builder(StormNames):
        ...     refused = {"set_poll_timeout_ms": "a poll never waits"}
        >>> Builder().setPollTimeoutMs
        Traceback (most recent call last):
        AttributeError: there is no setPollTimeoutMs here: a poll never waits
    """

    refused: ClassVar[Mapping[str, str]] = {}
    """By name, in small letters with underscores: why there is no such method, in the words of docs/connectors.md."""

    if not TYPE_CHECKING:  # for mypy, what is missing stays an error

        def __getattr__(self, name: str) -> Any:
            """Called for what the class lacks.

            Raises:
                AttributeError: always.
            """
            own = next((each for each in [*self.refused, *dir(type(self))] if _folded(each) == _folded(name)), None)
            if own in self.refused:
                raise AttributeError(f"there is no {name} here: {self.refused[own]}")
            if own is not None and not name.startswith("_"):
                raise AttributeError(f"{name} is {own} here")
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r:.100}")


def _folded(name: str) -> str:
    """Returns what `setPropOf`, `set_prop_of` and `setPropOF` have in common."""
    return name.replace("_", "").lower()
