"""Storm UI's `topology/:id/logconfig`: levels of loggers that change while a topology runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.log_config import MOST_LOGGERS, log_level
from storm_on_spark.cluster.records import LogLevel


class NamedLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The level of one logger, with Storm UI's names."""

    target_level: str | None = None
    """None takes the change back."""
    reset_level: str | None = None
    timeout: float = 0
    """Seconds; 0 without a limit."""
    timeout_epoch: float = 0
    """Milliseconds since the epoch, in answers; 0 without a limit."""


class LogConfigPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Body and answer of `logconfig`."""

    named_logger_levels: dict[str, NamedLevel]


def log_config_page(levels: Mapping[str, LogLevel]) -> LogConfigPage:
    """Returns the answer to a read.

    Example:
        >>> page = log_config_page({"a": LogLevel(level="DEBUG", secs=30, until=1030.0)})
        >>> page.named_logger_levels["a"].timeout_epoch
        1030000.0
    """
    return LogConfigPage(
        named_logger_levels={
            name: NamedLevel(
                target_level=level.level,
                reset_level=level.reset,
                timeout=level.secs,
                timeout_epoch=0 if level.until is None else level.until * 1000,
            )
            for name, level in sorted(levels.items())
        }
    )


def changes_of(body: LogConfigPage | None, now: float) -> dict[str, LogLevel | None]:
    """Returns what a request changes; an empty level takes a change back, as in Storm UI.

    Raises:
        RecordError: there is no body, or it has too many loggers.
        TransitionError: a level makes no sense.
    """
    if body is None or not 0 < len(body.named_logger_levels) <= MOST_LOGGERS:
        raise RecordError(f"a change of log levels needs namedLoggerLevels with 1 to {MOST_LOGGERS} loggers")
    return {
        name: log_level(name, level.target_level, level.timeout, level.reset_level or None, now=now)
        if level.target_level
        else None
        for name, level in body.named_logger_levels.items()
    }
