"""Messages of the multilang protocol: the handshake, and checks of what a child sends."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.task.multilang_context import storm_context
from storm_on_spark.multilang.errors import ShellError

HEARTBEAT_STREAM: Final = "__heartbeat"

_LEVELS: Final = {0: logging.DEBUG, 1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}


def setup_message(conf: Mapping[str, Any], context: TopologyContext, pid_dir: str) -> dict[str, Any]:
    """Returns the first message to a child: configuration, folder for its process id, and context as Storm's."""
    return {
        "conf": _sendable({**effective_conf(conf), "topology.name": context.topology_name}),
        "pidDir": pid_dir,
        "context": storm_context(context),
    }


def command_of(message: object) -> tuple[str, dict[str, Any]]:
    """Returns the command of a child's message, and the message.

    Raises:
        ShellError: it is not a message with a command.
    """
    if not isinstance(message, dict) or not isinstance(message.get("command"), str):
        raise ShellError(f"it sent {message!r:.200}, which has no command")
    return message["command"], message


def text_of(message: Mapping[str, Any], key: str) -> str:
    """Returns an id or text of a message; a number becomes text.

    Raises:
        ShellError: it is neither.
    """
    value = message.get(key)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ShellError(f'"{key}" of its message must be a string, not {value!r:.100}: {message!r:.200}')


class Emission:
    """The parts of an `emit` that bolts and spouts share.

    Args:
        message: as the child sent it.

    Raises:
        ShellError: a part is of the wrong type.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        values, stream, task = message.get("tuple"), message.get("stream"), message.get("task")
        need = message.get("need_task_ids")
        if not isinstance(values, list):
            raise ShellError(f'"tuple" of its emit must be a list, not {values!r:.100}')
        if stream is not None and not isinstance(stream, str):
            raise ShellError(f'"stream" of its emit must be a string, not {stream!r:.100}')
        if task is not None and (not isinstance(task, int) or isinstance(task, bool)):
            raise ShellError(f'"task" of its emit must be an int, not {task!r:.100}')
        if need is not None and not isinstance(need, bool):
            raise ShellError(f'"need_task_ids" of its emit must be true or false, not {need!r:.100}')
        self.values: list[Any] = values
        self.stream: str = stream or "default"
        self.task: int = task or 0
        self.need_task_ids = need is not False


def log_message(log: logging.Logger, where: str, message: Mapping[str, Any]) -> None:
    """Writes a child's log message at the level that it names."""
    level = message.get("level", 2)
    log.log(
        _LEVELS.get(level, logging.INFO) if isinstance(level, int) else logging.INFO,
        "%s: %s",
        where,
        message.get("msg"),
    )


def _sendable(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries that every serializer can send."""
    found = {}
    for key, value in conf.items():
        try:
            found[str(key)] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue
    return found
