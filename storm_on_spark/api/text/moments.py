"""When something happened, for people: local times."""

from __future__ import annotations

from datetime import datetime


def occurred(count: int, first: float, last: float) -> str:
    """Returns how often and when something happened, for example an error.

    Args:
        count: the number of times.
        first: the first time, in seconds since the epoch.
        last: the last time, likewise.

    Example:
        >>> noon = datetime(2026, 11, 27, 12).timestamp()
        >>> occurred(1, noon, noon)
        '2026-11-27 12:00:00'
        >>> occurred(1200, noon, noon + 90)
        'x 1,200, first 2026-11-27 12:00:00, last 12:01:30'
    """
    then, now = (datetime.fromtimestamp(moment).astimezone() for moment in (first, last))
    if count == 1:
        return f"{now:%Y-%m-%d %H:%M:%S}"
    day = "" if then.date() == now.date() else f"{now:%Y-%m-%d} "
    return f"x {count:,}, first {then:%Y-%m-%d %H:%M:%S}, last {day}{now:%H:%M:%S}"
