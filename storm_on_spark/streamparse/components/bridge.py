"""The place of Storm's pipe: what a component of pystorm sends and reads, as calls of a collector here.

All that pystorm's components do goes through four methods: `send_message`, `read_tuple`, `read_command` and
`read_task_ids`. A bridge takes their place on one instance, so that the classes themselves, installed or stood in for,
run as they are. Where a class leaves more of pystorm as it is, the bridge takes the place of more:
see `kinds.unchanged`.
"""

from __future__ import annotations

import io
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.errors import StormError, TupleError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.task.multilang_context import storm_context
from storm_on_spark.api.text.logs import component_logger
from storm_on_spark.streamparse.components.kinds import pystorm_class, unchanged

log = logging.getLogger(__name__)

_LEVELS: Final = {0: logging.DEBUG, 1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}

_constructing = threading.RLock()


class ReportedError(Exception):
    """What a component reported by `raise_exception`."""


def make_component(component_class: type) -> Any:
    """Returns an instance of a class of pystorm, without pipe, signal handler or thread.

    Spouts live in threads, where Python refuses signal handlers, and several components share a process.
    """
    base = pystorm_class(component_class, "Component")
    tickless = pystorm_class(component_class, "TicklessBatchingBolt")
    with _constructing:
        original = base.__init__
        tickless_original = None if tickless is None else tickless.__init__

        def without_pipe(self: Any, *args: Any, serializer: str = "json", **kwargs: Any) -> None:
            original(self, io.BytesIO(), io.BytesIO(), None, "json")

        def without_thread(self: Any, *args: Any, **kwargs: Any) -> None:
            super(tickless, self).__init__(*args, **kwargs)
            self.exc_info = None
            self._batch_lock = threading.RLock()

        base.__init__ = without_pipe
        if tickless is not None:
            tickless.__init__ = without_thread
        try:
            # As streamparse calls it.
            return component_class(serializer="json")
        finally:
            base.__init__ = original
            if tickless is not None:
                tickless.__init__ = tickless_original


class Bridge(ABC):
    """Connects one instance to its task here.

    Args:
        component: the instance.
        conf: the topology's configuration with the component's.
        context: the task's context.
    """

    def __init__(self, component: Any, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.component = component
        self.name = context.this_component_id
        self._context = context
        self._task_ids: deque[list[int]] = deque()
        self._do: dict[str, Callable[[dict[str, Any]], None]] = {
            "emit": self._emit,
            "log": self._log,
            "error": self._error,
            "metrics": self._metrics,
            "sync": lambda message: None,
        }
        component.storm_conf = dict(conf)
        component.context = storm_context(context)
        component.topology_name = context.topology_name
        component.task_id = context.this_task_id
        component.component_name = self.name
        component.debug = bool(conf.get("topology.debug"))
        level = "debug" if component.debug else str(conf.get("pystorm.log.level") or "info")
        component.logger = component_logger(f"pystorm.component.{self.name}", _level(level))
        component.send_message = self.send
        component.read_task_ids = self.read_task_ids
        self.services = self._services()
        component.initialize(component.storm_conf, component.context)

    def _services(self) -> tuple[Any, ...]:
        """Returns what is not part of the component's state."""
        component = self.component
        names = ("storm_conf", "context", "logger", "pid", "serializer", "send_message", "read_task_ids")
        more = ("_reader_lock", "_writer_lock", "_batch_lock", "_pending_commands", "_pending_task_ids")
        found = [vars(component)[name] for name in (*names, *more) if name in vars(component)]
        return (self, *found)

    def send(self, message: Any) -> None:
        """Does what a message says; in place of `Component.send_message`."""
        try:
            do = self._do[message["command"]]
        except (KeyError, TypeError):
            component = type(self.component).__name__
            raise TupleError(
                f'{component} "{self.name}" sent {message!r:.200}, which is not a message of Storm'
            ) from None
        do(message)

    def read_task_ids(self) -> list[int]:
        """Returns the tasks of the last emit; in place of `Component.read_task_ids`."""
        return self._task_ids.popleft()

    @abstractmethod
    def _emit(self, message: dict[str, Any]) -> None: ...

    def _keep(self, tasks: list[int], message: dict[str, Any]) -> None:
        if message.get("need_task_ids", True):
            self._task_ids.append(tasks)

    def _log(self, message: dict[str, Any]) -> None:
        self.component.logger.log(_LEVELS.get(message.get("level", 2), logging.INFO), "%s", message["msg"])

    @abstractmethod
    def _error(self, message: dict[str, Any]) -> None: ...

    def _metrics(self, message: dict[str, Any]) -> None:
        name, value = str(message["name"]), message["params"]
        self.component.logger.debug("metric %s = %r", name, value)
        try:
            self._context.metrics.report(name, value)
        except (StormError, TypeError, ValueError) as error:  # of a metric, which must not fail a tuple
            self.component.logger.warning("metric %s = %r is not reported: %s", name, value, error)


class SpoutBridge(Bridge):
    """Connects a spout."""

    def __init__(
        self, component: Any, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self._collector = collector
        self._command: dict[str, Any] = {}
        component.read_command = self.read_command
        kind = type(component)
        #: Whether pystorm's loop body may be left out.
        self._direct = unchanged(kind, "_run", "read_command")
        # A `ReliableSpout` keeps what it emits.
        if unchanged(kind, "emit", "send_message") and pystorm_class(kind, "ReliableSpout") is None:
            component.emit = self.emit
        super().__init__(component, conf, context)

    def _services(self) -> tuple[Any, ...]:
        return (*super()._services(), self.component.read_command, self.emit)

    def tell(self, command: str, *message_id: Any) -> None:
        """Lets the spout do what Storm commands: the name of one of its methods, and what the method is given."""
        component = self.component
        try:
            if self._direct:
                getattr(component, command)(*message_id)
                return
            self._command = {"command": "next" if command == "next_tuple" else command}
            if message_id:
                (self._command["id"],) = message_id
            component._run()
        except Exception as error:
            if component.exit_on_exception:
                raise
            component._handle_run_exception(error)

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple; in place of `Spout.emit`.

        Raises:
            TypeError: `tup` is neither a list nor a tuple.
        """
        check_tuple(tup)
        if direct_task is not None:
            self._collector.emit_direct(direct_task, tup, tup_id, stream or DEFAULT_STREAM)
            return [direct_task] if need_task_ids else None
        tasks = self._collector.emit(tup, tup_id, stream or DEFAULT_STREAM)
        return tasks if need_task_ids else None

    def read_command(self) -> dict[str, Any]:
        """Returns the command that was offered; in place of `Component.read_command`."""
        return self._command

    def _emit(self, message: dict[str, Any]) -> None:
        stream, task = message.get("stream", DEFAULT_STREAM), message.get("task")
        if task:
            self._collector.emit_direct(task, message["tuple"], message.get("id"), stream)
        else:
            self._keep(self._collector.emit(message["tuple"], message.get("id"), stream), message)

    def _error(self, message: dict[str, Any]) -> None:
        self._collector.report_error(ReportedError(message["msg"]))


def check_tuple(tup: Any) -> None:
    """Refuses what pystorm refuses to emit.

    Raises:
        TypeError: `tup` is neither a list nor a tuple.
    """
    if not isinstance(tup, (list, tuple)):
        raise TypeError(f"All Tuples must be either lists or tuples, received {type(tup)!r} instead.")


def _level(name: str) -> int:
    found = logging.getLevelName({"trace": "DEBUG", "warn": "WARNING"}.get(name.lower(), name.upper()))
    return found if isinstance(found, int) else logging.INFO
