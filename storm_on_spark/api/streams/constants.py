"""Ids of the system's components and streams. Ids of users must not start with `__`."""

from __future__ import annotations

from typing import Final

SYSTEM_PREFIX: Final = "__"
"""The prefix of the ids of all system components and streams."""

SYSTEM_COMPONENT: Final = "__system"
"""The component that tick and timer tuples come from."""

SYSTEM_TASK: Final = -1
"""The task that tick and timer tuples come from."""

TICK_STREAM: Final = "__tick"
"""The stream of tick tuples; one field, `rate_secs`."""

TIMER_STREAM: Final = "__timer"
"""The stream of timer tuples; fields `name` and `time_ms`."""

ACKER_COMPONENT: Final = "__acker"
"""The component that tracks tuple trees."""


def is_system_id(name: str) -> bool:
    """Returns whether a component or stream id is reserved for the system.

    Example:
        >>> is_system_id("__acker"), is_system_id("_mine")
        (True, False)
    """
    return name.startswith(SYSTEM_PREFIX)
