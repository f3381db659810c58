"""Durations as Storm UI writes them."""

from __future__ import annotations


def pretty(seconds: float) -> str:
    """Returns a duration in days, hours, minutes and seconds, from the first unit that isn't zero on.

    Example:
        >>> pretty(5), pretty(365.9), pretty(86400), pretty(-1)
        ('5s', '6m 5s', '1d 0h 0m 0s', '0s')
    """
    rest = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, rest = divmod(rest, size)
        if parts or count or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts)
