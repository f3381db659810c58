"""The place of Storm's pipe for a bolt.

Most classes override `process` and little else. Then no message is made for a tuple, an ack or an emit: the bridge
takes the place of `emit`, `ack`, `fail` and of the loop body, `_run`. Whatever a class does override runs as it is,
over the messages that pystorm's own methods make.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Delivery, Tuple
from storm_on_spark.streamparse.components.bridge import Bridge, ReportedError, check_tuple
from storm_on_spark.streamparse.components.kinds import pystorm_class, unchanged
from storm_on_spark.streamparse.named import named_tuple
from storm_on_spark.streamparse.stand_in.pystorm.bolt import type_name

PENDING: Final = "_storm_on_spark_pending"
"""The attribute of a bolt that has the tuples which it has neither acked nor failed, by id. It is part of its state."""

_CALLED: Final = ("emit", "ack", "fail")

_LOW: Final = tuple(f"{number:04}" for number in range(10_000))
"""The last digits of ids. To join two texts takes two thirds of the time in which one is made of a number: 3 % of what
the bridge takes for a tuple of a word count, by its processor time."""

_new = tuple.__new__  # Of a named tuple: its own `__new__` and `_make` take three times as long.


class BoltBridge(Bridge):
    """Connects a bolt.

    Args:
        component: the instance.
        conf: the topology's configuration with the component's.
        context: the task's context.
        collector: the task's collector.
    """

    def __init__(
        self, component: Any, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self._collector = collector
        self._ack_to = collector.ack
        self._ids = itertools.chain.from_iterable(map(str(high).__add__, _LOW) for high in itertools.count(1))
        #: The tuple that is being executed, until it is acked, failed or kept; and its id.
        self._tup: Tuple | None = None
        self._id = ""
        self._unread = False
        #: What `_current_tups` is while that tuple alone is anchored to.
        self._current: list[Any] = []
        #: Of the tuples that came together: where they come from, and the type of their values.
        self._delivery: Delivery | None = None
        self._source, self._stream, self._task, self._tick = "", "", 0, False
        self._values: Any = tuple
        self._types: dict[tuple[str, str], Any] = {}
        kind = type(component)
        self._tuple: Any = _tuple_of(pystorm_class(kind, "Component"))
        self._batching = pystorm_class(kind, "BatchingBolt") is not None
        #: Whether ticks of ours are its clock.
        self._timed = pystorm_class(kind, "TicklessBatchingBolt") is not None
        self._fail_fast = bool(conf.get(Config.TOPOLOGY_FAIL_FAST))
        #: Whether pystorm's loop body may be left out.
        self._direct = unchanged(kind, "_run", "read_tuple", "read_command", "is_tick", "is_heartbeat")
        vars(component).setdefault(PENDING, {})
        component.read_tuple = self.read_tuple
        self._called = {name: getattr(self, name) for name in _CALLED if unchanged(kind, name, "send_message")}
        vars(component).update(self._called)
        super().__init__(component, conf, context)
        self._acks_here = component.ack == self.ack
        self._do.update(ack=self._ack, fail=self._fail)

    def _services(self) -> tuple[Any, ...]:
        return (*super()._services(), self.component.read_tuple, *self._called.values())

    @property
    def pending(self) -> dict[str, Tuple]:
        """The tuples that are neither acked nor failed, but for the one that is being executed."""
        found: dict[str, Tuple] = vars(self.component)[PENDING]
        return found

    # --- one tuple ---------------------------------------------------------------

    def execute(self, tup: Tuple) -> None:
        """Lets the bolt process one tuple.

        An exception is what it is for any bolt here: the tuple fails, with `topology.fail.fast` the topology ends. A
        bolt that says `exit_on_exception = False` handles it itself, as does a batching bolt: its group fails.
        """
        self._tup = tup
        component = self.component
        try:
            if not self._direct:
                self._unread = True
                component._run()
            else:
                # What `read_tuple` and `_run` do, without their messages.
                if tup._delivery is not self._delivery:
                    self._meet(tup)
                self._id = name = next(self._ids)
                if (pending := component._storm_on_spark_pending) and name in pending:
                    self._id = name = self._unused()
                made = _new(
                    self._tuple, (name, self._source, self._stream, self._task, _new(self._values, tup._values))
                )
                component._current_tups = self._current = [made]
                if self._tick:
                    component.process_tick(made)
                else:
                    component.process(made)
                if component.auto_ack and not self._batching:
                    if self._tup is tup and self._acks_here:
                        self._tup = None
                        self._ack_to(tup)
                    else:
                        component.ack(made)
                component._current_tups = []
            if self._timed and tup.is_tick:
                component.process_batches()
                component._current_tups = []
        except Exception as error:
            if not self._handles():
                self._tup = None  # The runtime fails it.
                raise
            self._handle(error)
        if self._tup is not None:
            # It is neither acked nor failed.
            self.pending[self._id] = tup
            self._tup = None

    def _handles(self) -> bool:
        return not self.component.exit_on_exception or (self._batching and not self._fail_fast)

    def _handle(self, error: Exception) -> None:
        component = self.component
        component._handle_run_exception(error)
        if self._batching and component.exit_on_exception:
            # In pystorm the process ends here, and what it has collected has failed.
            component._batches = defaultdict(list)
            component._tick_counter = 0
        component._current_tups = []

    def read_tuple(self) -> Any:
        """Returns the tuple that is to be executed; in place of `Bolt.read_tuple`."""
        tup = self._tup
        if tup is None or not self._unread:
            raise TupleError(f'bolt "{self.name}" reads a tuple by itself; it is given one at a time')
        self._unread = False
        self._meet(tup)
        self._id = self._unused()
        # No list that `_run` makes is this one, so an emit looks its anchors up.
        self._current = []
        return self._tuple(self._id, self._source, self._stream, self._task, self._values._make(tup))

    def _unused(self) -> str:
        pending = self.pending
        return next(name for name in self._ids if name not in pending)

    def _meet(self, tup: Tuple) -> None:
        self._delivery = tup._delivery
        self._source, self._stream, self._task = tup.source_component, tup.source_stream, tup.source_task
        self._tick = tup.is_tick
        of = (self._source, self._stream)
        kind = self._types.get(of)
        if kind is None:
            kind = self._types[of] = named_tuple(type_name(*of), tuple(tup.fields))
        self._values = kind

    # --- in place of the component's methods ----------------------------------------------------

    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple; in place of `Bolt.emit` and `BatchingBolt.emit`.

        Raises:
            TypeError: `tup` is neither a list nor a tuple.
        """
        if tup.__class__ is not list:
            check_tuple(tup)
        component = self.component
        anchored: Any
        if anchors is None and component._current_tups is self._current and self._tup is not None:
            anchored = self._tup if component.auto_anchor else None
        else:
            if anchors is None:
                anchors = component._current_tups if component.auto_anchor else ()
            anchored = [self._anchor(self._id_of(anchor)) for anchor in anchors]
        if direct_task is not None:
            self._collector.emit_direct(direct_task, tup, anchored, stream or DEFAULT_STREAM)
            tasks = [direct_task]
        else:
            tasks = self._collector.emit(tup, anchored, stream or DEFAULT_STREAM)
        return tasks if need_task_ids and not self._batching else None

    def ack(self, tup: Any) -> None:
        """Acks a tuple, given by itself or by its id; in place of `Bolt.ack`. Further acks of it mean nothing."""
        found = self._taken(self._id_of(tup))
        if found is not None:
            self._ack_to(found)

    def fail(self, tup: Any) -> None:
        """Fails a tuple, given by itself or by its id; in place of `Bolt.fail`."""
        found = self._taken(self._id_of(tup))
        if found is not None:
            self._collector.fail(found)

    def _id_of(self, tup: Any) -> Any:
        return tup.id if isinstance(tup, self._tuple) else tup

    def _taken(self, name: Any) -> Tuple | None:
        """Returns a tuple that is neither acked nor failed yet, and won't be so again."""
        if name != self._id or self._tup is None:
            return self.pending.pop(name, None)
        found, self._tup = self._tup, None
        return found

    def _anchor(self, name: Any) -> Tuple:
        if name == self._id and self._tup is not None:
            return self._tup
        try:
            return self.pending[name]
        except (KeyError, TypeError):
            raise TupleError(
                f'bolt "{self.name}" anchors to the tuple {name!r}, which it was not given, or has acked or failed'
            ) from None

    # --- messages of methods that a class overrides ------------------------------------------------

    def _emit(self, message: dict[str, Any]) -> None:
        anchors = [self._anchor(name) for name in message.get("anchors") or ()]
        stream, task = message.get("stream", DEFAULT_STREAM), message.get("task")
        if task:
            self._collector.emit_direct(task, message["tuple"], anchors, stream)
        else:
            self._keep(self._collector.emit(message["tuple"], anchors, stream), message)

    def _ack(self, message: dict[str, Any]) -> None:
        self.ack(message["id"])

    def _fail(self, message: dict[str, Any]) -> None:
        self.fail(message["id"])

    def _error(self, message: dict[str, Any]) -> None:
        self._collector.report_error(ReportedError(message["msg"]))


@functools.cache
def _tuple_of(component_base: type) -> Any:
    return importlib.import_module(component_base.__module__).Tuple
