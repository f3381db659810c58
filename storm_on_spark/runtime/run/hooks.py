"""Task hooks that the configuration asks for."""

from __future__ import annotations

import importlib
import logging

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.task.base_hook import BaseTaskHook
from storm_on_spark.api.task.hooks import EmitInfo
from storm_on_spark.runtime.run.settings import HookSettings

log = logging.getLogger("storm_on_spark.debug")


class DebugHook(BaseTaskHook):
    """Logs every emit, as `topology.debug` asks for."""

    def emit(self, info: EmitInfo) -> None:
        """Logs stream, values and receivers."""
        log.warning("task %s emitted on %s to %s: %r", info.task_id, info.stream, info.out_tasks, info.values)


def hooks_for(settings: HookSettings) -> list[BaseTaskHook]:
    """Returns new hooks for a task: those of `topology.auto.task.hooks`, and the debug hook where it is on.

    Raises:
        ConfigError: a named class can't be imported or is not a hook.
    """
    hooks: list[BaseTaskHook] = [DebugHook()] if settings.debug else []
    for name in settings.names or ():
        module, _, attribute = name.rpartition(".")
        try:
            hook = getattr(importlib.import_module(module), attribute)()
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise ConfigError(
                f"topology.auto.task.hooks names {name!r}, which can't be used: {error}; give module.Class"
            ) from error
        if not isinstance(hook, BaseTaskHook):
            raise ConfigError(f"topology.auto.task.hooks names {name!r}, which is not a subclass of BaseTaskHook")
        hooks.append(hook)
    return hooks
