"""Levels of loggers that are changed while a topology runs. Pure; times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, get_args

from storm_on_spark.cluster.errors import TransitionError
from storm_on_spark.cluster.records import LevelName, LogConfig, LogLevel

MOST_SECS: Final = 30 * 86400
MOST_LOGGERS: Final = 100
_MOST_NAME: Final = 200
_NAMES: Final = get_args(LevelName)


def log_level(logger: str, level: str, secs: float = 0, reset: str | None = None, *, now: float) -> LogLevel:
    """Returns a checked level.

    Args:
        logger: its name, for errors.
        level: one of Storm's, in any case.
        secs: for how long; 0 without a limit.
        reset: the level after that; None for the one before.
        now: the time.

    Raises:
        TransitionError: one of them makes no sense.

    Example:
        >>> log_level("my.bolt", "debug", 30, now=1000.0)
        LogLevel(level='DEBUG', secs=30, until=1030.0, reset=None)
    """
    if not logger or len(logger) > _MOST_NAME or not logger.isprintable():
        raise TransitionError(f"a logger's name has 1 to {_MOST_NAME} printable characters, not {logger[:80]!r}")
    for given in (level, *(() if reset is None else (reset,))):
        if given.upper() not in _NAMES:
            raise TransitionError(f"logger {logger!r}: level {given[:40]!r} is none of {', '.join(_NAMES)}")
    if not 0 <= secs <= MOST_SECS:
        raise TransitionError(f"logger {logger!r}: {secs} s is not a time limit; 0 for none, or up to {MOST_SECS}")
    whole = int(secs)
    after = None if reset is None else cast("LevelName", reset.upper())
    return LogLevel(
        level=cast("LevelName", level.upper()), secs=whole, until=now + whole if whole else None, reset=after
    )


def changed(config: LogConfig, changes: Mapping[str, LogLevel | None], now: float) -> LogConfig:
    """Returns the levels after a change; those whose time is over and that leave nothing are dropped.

    Args:
        config: the levels so far.
        changes: logger -> level; None takes it back.
        now: the time.

    Raises:
        TransitionError: those are too many.
    """
    levels = {name: level for name, level in config.levels.items() if _counts(level, now)}
    levels.update({name: level for name, level in changes.items() if level is not None})
    for name, level in changes.items():
        if level is None:
            levels.pop(name, None)
    if len(levels) > MOST_LOGGERS:
        raise TransitionError(f"{len(levels)} loggers with changed levels; at most {MOST_LOGGERS} are allowed")
    return LogConfig(topology_id=config.topology_id, levels=levels)


def shown_levels(config: LogConfig | None, now: float) -> dict[str, LogLevel]:
    """Returns the levels that count, by logger."""
    return {} if config is None else {name: level for name, level in config.levels.items() if _counts(level, now)}


def effective_levels(config: LogConfig | None, now: float) -> dict[str, str]:
    """Returns logger -> the level that it is to have now; others have their own.

    Example:
        >>> config = LogConfig(topology_id="t", levels={"a": LogLevel(level="DEBUG", secs=30, until=1030.0)})
        >>> effective_levels(config, 1029.0), effective_levels(config, 1030.0)
        ({'a': 'DEBUG'}, {})
    """
    return {
        name: level.level if level.until is None or now < level.until else str(level.reset)
        for name, level in shown_levels(config, now).items()
    }


def _counts(level: LogLevel, now: float) -> bool:
    return level.until is None or now < level.until or level.reset is not None


def in_words(changes: Mapping[str, LogLevel | None]) -> str:
    """Returns a change of log levels in words."""
    parts = []
    for name, level in sorted(changes.items()):
        limit = "" if level is None or not level.secs else f" for {level.secs} s"
        parts.append(f"{name} as before" if level is None else f"{name}={level.level}{limit}")
    return ", ".join(["log level", *parts])
