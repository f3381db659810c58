"""Ids of the system's components and streams. Ids of users must not start with `__`."""

from __future__ import annotations

from typing import Final

SYSTEM_PREFIX: Final = "__"
"""The prefix of the ids of all system components and streams."""

SYSTEM_COMPONENT: Final = "__system"
"""The component that tick tuples come from."""

SYSTEM_TASK: Final = -1
"""The task that tick tuples come from."""

TICK_STREAM: Final = "__tick"
"""The stream of tick tuples; one field, `rate_secs`."""

ACKER_COMPONENT: Final = "__acker"
"""The component that tracks tuple trees."""


def is_system_id(name: str) -> bool:
    """Returns whether a component or stream id is reserved for the system.

    Example:
        >>> is_system_id("__acker"), is_system_id("_mine")
        (True, False)
    """
    return name.startswith(SYSTEM_PREFIX)
