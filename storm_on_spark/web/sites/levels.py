"""What the form about log levels asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from storm_on_spark.cluster.errors import TransitionError
from storm_on_spark.cluster.log_config import log_level
from storm_on_spark.cluster.records import LogLevel
from storm_on_spark.web.model import RefusedError

AS_BEFORE = "as before"
"""The choice that takes a change back."""


def wanted_level(options: Mapping[str, str], now: float) -> tuple[str, LogLevel | None]:
    """Returns a logger, and the level that it is to have; None for the one that it has by itself.

    Args:
        options: of the form: `logger`, `level`, and `secs`, for how long; empty or 0 without a limit.
        now: seconds since the epoch.

    Raises:
        RefusedError: there is no such level, or the logger's name or the time makes no sense.

    Example:
        >>> wanted_level({"logger": "my.bolt", "level": "debug", "secs": "30"}, 1000.0)
        ('my.bolt', LogLevel(level='DEBUG', secs=30, until=1030.0, reset=None))
        >>> wanted_level({"logger": "my.bolt", "level": "as before"}, 1000.0)
        ('my.bolt', None)
    """
    logger, level, secs = (options.get(name, "").strip() for name in ("logger", "level", "secs"))
    if not re.fullmatch(r"[0-9]{0,9}", secs):
        raise RefusedError(f"the time must be a number of seconds, not {secs[:80]!r}")
    try:
        found = log_level(logger, "INFO" if level == AS_BEFORE else level, int(secs or 0), now=now)
    except TransitionError as error:
        raise RefusedError(str(error)) from None
    return logger, None if level == AS_BEFORE else found


def level_told(logger: str, level: LogLevel | None) -> str:
    """Returns the same in words.

    Example:
        >>> level_told("my.bolt", LogLevel(level="DEBUG", secs=30)), level_told("ROOT", None)
        ('my.bolt logs DEBUG for 30 s', 'ROOT logs as before')
    """
    if level is None:
        return f"{logger} logs as before"
    return f"{logger} logs {level.level}" + (f" for {level.secs} s" if level.secs else "")
