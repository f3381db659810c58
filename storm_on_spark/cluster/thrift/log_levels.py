"""Storm's `LogConfig` and the levels that a topology's record has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.log_config import log_level
from storm_on_spark.cluster.records import LogLevel
from storm_on_spark.cluster.thrift.interface import interface


def log_changes(config: Any, now: float) -> dict[str, LogLevel | None]:
    """Returns what a call changes.

    Args:
        config: the interface's `LogConfig`.
        now: seconds since the epoch.

    Raises:
        RecordError: it has no level where one is to be set.
        TransitionError: a level makes no sense.
    """
    actions = interface().LogLevelAction
    changes: dict[str, LogLevel | None] = {}
    for name, given in ((config and config.named_logger_level) or {}).items():
        if not isinstance(name, str) or given.action not in (actions.UNCHANGED, actions.UPDATE, actions.REMOVE):
            raise RecordError(f"LogConfig of a call: action {given.action!r:.40} of logger {name!r:.80} is unknown")
        if given.action == actions.REMOVE:
            changes[name] = None
        elif given.action == actions.UPDATE:
            level, reset = given.target_log_level, given.reset_log_level
            if not isinstance(level, str) or not isinstance(reset, str | None):
                raise RecordError(f"LogConfig of a call: logger {name!r:.80} has no target_log_level")
            changes[name] = log_level(name, level, given.reset_log_level_timeout_secs or 0, reset, now=now)
    return changes


def log_config(levels: Mapping[str, LogLevel]) -> Any:
    """Returns the interface's `LogConfig`."""
    types = interface()
    return types.LogConfig(
        named_logger_level={
            name: types.LogLevel(
                action=types.LogLevelAction.UNCHANGED,
                target_log_level=level.level,
                reset_log_level_timeout_secs=level.secs,
                reset_log_level_timeout_epoch=None if level.until is None else int(level.until * 1000),
                reset_log_level=level.reset,
            )
            for name, level in levels.items()
        }
    )
