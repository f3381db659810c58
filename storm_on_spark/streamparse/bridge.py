"""The place of Storm's pipe: what a component of pystorm sends and reads, as calls of a collector here.

All that pystorm's components do goes through four methods: `send_message`, `read_tuple`, `read_command` and
`read_task_ids`. A bridge takes their place on one instance, so that the classes themselves, installed or stood in for,
run as they are.
"""

from __future__ import annotations

import functools
import importlib
import io
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from storm_on_spark.api.collector import OutputCollector, SpoutOutputCollector
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import StormError, TupleError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streamparse.context import storm_context
from storm_on_spark.streamparse.kinds import pystorm_class
from storm_on_spark.streamparse.named import named_tuple
from storm_on_spark.streamparse.stand_in.pystorm.bolt import type_name

log = logging.getLogger(__name__)

PENDING: Final = "_storm_on_spark_pending"
"""The attribute of a bolt that has the tuples which it has neither acked nor failed, by id. It is part of its state."""

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
        component.logger = logging.getLogger(f"pystorm.component.{self.name}")
        component.logger.setLevel(_level(level))
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
            raise TupleError(f'{component} "{self.name}" sent {message!r:.200}, which is no message of Storm') from None
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


class BoltBridge(Bridge):
    """Connects a bolt."""

    def __init__(
        self, component: Any, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self._collector = collector
        self._next = 0
        self._incoming: Tuple | None = None
        vars(component).setdefault(PENDING, {})
        self._tuple: Any = _tuple_of(pystorm_class(type(component), "Component"))
        self._types: dict[tuple[str, str], Any] = {}
        component.read_tuple = self.read_tuple
        super().__init__(component, conf, context)
        self._do.update(ack=self._ack, fail=self._fail)

    def _services(self) -> tuple[Any, ...]:
        return (*super()._services(), self.component.read_tuple)

    @property
    def pending(self) -> dict[str, Tuple]:
        """The tuples that are neither acked nor failed."""
        found: dict[str, Tuple] = vars(self.component)[PENDING]
        return found

    def offer(self, tup: Tuple) -> None:
        """Makes a tuple the one that is read next."""
        self._incoming = tup

    def read_tuple(self) -> Any:
        """Returns the tuple that was offered; in place of `Bolt.read_tuple`."""
        tup = self._incoming
        if tup is None:
            raise TupleError(f'bolt "{self.name}" reads a tuple by itself; it is given one at a time')
        self._incoming = None
        pending = self.pending
        self._next += 1
        while (name := str(self._next)) in pending:
            self._next += 1
        pending[name] = tup
        source, stream = tup.source_component, tup.source_stream
        kind = self._types.get((source, stream))
        if kind is None:
            kind = self._types[source, stream] = named_tuple(type_name(source, stream), tuple(tup.fields))
        return self._tuple(name, source, stream, tup.source_task, kind._make(tup))

    def forget(self, tup: Tuple) -> None:
        """Takes back a tuple that the runtime settles."""
        for name in [name for name, other in self.pending.items() if other is tup]:
            del self.pending[name]

    def _emit(self, message: dict[str, Any]) -> None:
        anchors = [self._anchor(name) for name in message.get("anchors") or ()]
        stream, task = message.get("stream", DEFAULT_STREAM), message.get("task")
        if task:
            self._collector.emit_direct(task, message["tuple"], anchors, stream)
        else:
            self._keep(self._collector.emit(message["tuple"], anchors, stream), message)

    def _anchor(self, name: Any) -> Tuple:
        try:
            return self.pending[name]
        except (KeyError, TypeError):
            raise TupleError(
                f'bolt "{self.name}" anchors to the tuple {name!r}, which it was not given, or has acked or failed'
            ) from None

    def _ack(self, message: dict[str, Any]) -> None:
        tup = self.pending.pop(message["id"], None)
        # As for bolts of this package, further acks of a tuple mean nothing.
        if tup is not None:
            self._collector.ack(tup)

    def _fail(self, message: dict[str, Any]) -> None:
        tup = self.pending.pop(message["id"], None)
        if tup is not None:
            self._collector.fail(tup)

    def _error(self, message: dict[str, Any]) -> None:
        self._collector.report_error(ReportedError(message["msg"]))


class SpoutBridge(Bridge):
    """Connects a spout."""

    def __init__(
        self, component: Any, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self._collector = collector
        self._command: dict[str, Any] = {}
        component.read_command = self.read_command
        super().__init__(component, conf, context)

    def _services(self) -> tuple[Any, ...]:
        return (*super()._services(), self.component.read_command)

    def offer(self, command: dict[str, Any]) -> None:
        """Makes a command the one that is read next."""
        self._command = command

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


def _level(name: str) -> int:
    found = logging.getLevelName({"trace": "DEBUG", "warn": "WARNING"}.get(name.lower(), name.upper()))
    return found if isinstance(found, int) else logging.INFO


@functools.cache
def _tuple_of(component_base: type) -> Any:
    return importlib.import_module(component_base.__module__).Tuple
