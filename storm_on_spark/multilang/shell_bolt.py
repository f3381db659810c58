"""A bolt whose work is done by a child process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from storm_on_spark.api.component import BaseRichBolt
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.multilang import child as child_module
from storm_on_spark.multilang.child import Child
from storm_on_spark.multilang.component import ShellComponent
from storm_on_spark.multilang.errors import MOST_USELESS, ShellError, UselessChildError
from storm_on_spark.multilang.framing import framing_of
from storm_on_spark.multilang.messages import HEARTBEAT_STREAM, Emission, command_of, text_of
from storm_on_spark.runtime.reports.shown_values import input_text

_MOST_STARTS = 3
"""Starts of the child in one micro-batch; with more deaths the rest of its tuples fail at once."""
_MOST_BACKOFF_SECS = 5.0
_PROOF_SECS = 2.0
"""How long a child that was given nothing is waited for to answer or to die."""
_WORK = ("emit", "ack", "fail", "sync")
"""What a child says that does something."""


@dataclass
class _State:
    """What is known of the child between two turns; saved with every micro-batch."""

    folder: str = ""
    turn: int = 0
    pending: dict[str, Tuple] = field(default_factory=dict)
    """Inputs that the child has neither acked nor failed, by the id that they were sent with."""
    owed: int = 0
    """Heartbeats that are not answered yet."""
    answers: bool = False
    """Whether the child answers heartbeats."""
    deaths: int = 0
    """Deaths since the last ack."""
    useless: int = 0
    """Children that have died since one did something."""
    said: int = 0
    """Messages since the child last acked, failed or answered."""
    rest: bytes = b""
    """What was read of a message that is not complete."""
    unsent: bytes = b""
    """What was not written yet."""


class ShellBolt(ShellComponent, BaseRichBolt):
    """Executes a command as a bolt, over Storm's multilang protocol.

    At the end of its micro-batch the child gets a heartbeat; what it sends before its answer belongs to this
    micro-batch. Inputs that it keeps longer stay pending, as in Storm. If the child ends, hangs or breaks the protocol,
    the error is reported with its last lines of stderr, all inputs that it has not acked fail, and it is started again.
    If several have ended before the first of them has done anything, the topology fails.

    Args:
        command: program and arguments; never a line for a shell.
        output_fields: the fields of the default stream, or of each stream by its id.
        direct_streams: those of the streams that are direct.
        directory: the child's working directory; unset, the folder `resources` of the code, as in Storm, or one on
            Python's module search path that has a file of the command, or the worker's own.
        environment: variables for the child, beside those of its worker.

    Raises:
        ShellError: the command is not a list of strings.

    Example:
        >>> bolt = ShellBolt(["node", "split.js"], ["word"])
    """

    stateless: ClassVar[bool | None] = False
    turn_secs: ClassVar[int | None] = 1
    """How often an idle child is listened to."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Prepares the start of the child, which is started or found when a tuple comes."""
        self._set_up(conf, context, idle=True)
        self._collector = collector
        self._framing = framing_of(self._launch.serializer)
        self._state = _State()
        self._in_turn = False
        #: Whether any child has done something, as far as this process knows.
        self._worked = False
        self._starts = 0
        #: What the child has reported last, until its next message.
        self._said: ShellError | None = None
        self._next_id = random.getrandbits(62)

    def execute(self, tup: Tuple) -> None:
        """Sends a tuple to the child."""
        if not self._in_turn:
            self._begin()
        self._next_id += 1
        name = str(self._next_id)
        message = {
            "id": name,
            "comp": tup.source_component,
            "stream": tup.source_stream,
            "task": tup.source_task,
            "tuple": list(tup.values),
        }
        try:
            data = self._framing.encode(message)
        except ValueError as error:
            self._collector.report_error(ShellError(f"a tuple can't be sent to the child process: {error}"))
            self._collector.fail(tup)
            return
        child = self._living()
        if child is None:
            self._collector.fail(tup)
            return
        self._state.pending[name] = tup
        child.send(data)
        if child.queued >= self._max_pending:
            try:
                child.exchange(self._handle, lambda: child.queued < self._max_pending)
            except ShellError as error:
                self._lost(child.ended(error))

    def finish_micro_batch(self) -> None:
        """Waits until the child has done what it was given, or says that it keeps some of it."""
        if not self._in_turn:
            self._begin()
        if self._child is not None:
            # A child that speaks without end is listened to again in the next micro-batch.
            self._end_turn(self._child, self._is_done, self._launch.timeout_secs)
            self._report_said({})
        # One that has died before it did anything may be the first of many.
        while self._child is None and self._state.useless and not self._worked and self._starts < _MOST_STARTS:
            child = self._living()
            if child is not None:
                self._end_turn(child, lambda: self._worked, _PROOF_SECS)
        self._in_turn = False

    def cleanup(self) -> None:
        """Ends the child."""
        self._end()

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is saved: of a prepared bolt what it knows of its child, and not the child."""
        return {"_state": self._state} if "_state" in self.__dict__ else self.__dict__.copy()

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Takes what was saved. A child that is in another state is not used again."""
        self.__dict__.update(saved)
        if "_state" in saved:
            self._in_turn = False
            if self._child is not None and self._child.folder.name != self._state.folder:
                self._child.end()
                self._child = None

    def _end_turn(self, child: Child, done: Callable[[], bool], most_secs: float) -> None:
        state = self._state
        state.owed += 1
        self._next_id += 1
        child.send(
            self._framing.encode(
                {"id": str(self._next_id), "comp": None, "stream": HEARTBEAT_STREAM, "task": -1, "tuple": []}
            )
        )
        try:
            child.exchange(self._handle, done, most_secs)
            state.rest, state.unsent = child.framing.rest, child.unsent
            state.turn += 1
            child.end_turn(state.turn)
        except ShellError as error:
            self._lost(child.ended(error))

    # --- turns --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        state = self._state
        self._in_turn, self._starts, self._said = True, 0, None
        child = self._child
        if child is None and state.folder:
            try:
                child = Child.attach(self._launch, state.folder, state.rest, state.unsent)
            except ShellError:  # what it had sent is broken
                child = None
        if child is not None and child.begin_turn(state.turn):
            self._child, self._worked = child, True
            return
        if child is None and not state.pending:
            # Nothing is lost: its worker was idle and has ended, or the task has moved to another machine.
            self._state = _State(deaths=state.deaths, useless=state.useless)
        elif child is None:
            self._lost(ShellError("the child process ended, or runs where the task was executed before"))
        elif child.alive():
            self._lost(child.ended(ShellError("it worked on an attempt at a micro-batch that is made again")))
        else:
            self._lost(child.ended(ShellError("it ended between two micro-batches")))

    def _living(self) -> Child | None:
        """Returns the child; starts it if there is none, unless that failed too often."""
        state = self._state
        if self._child is None and self._starts < _MOST_STARTS:
            self._starts += 1
            if state.deaths > 1:
                time.sleep(min(0.1 * 2 ** min(state.deaths - 2, 10), _MOST_BACKOFF_SECS))
            try:
                self._child = self._start()
                state.folder = self._child.folder.name
            except ShellError as error:
                self._lost(error)
        return self._child

    def _lost(self, error: ShellError) -> None:
        """Reports that the child is gone, and fails what it had."""
        state = self._state
        self._report_said({})
        error.input = self._about({})
        if error.input and len(state.pending) > 1:
            error.input += f", or one of {len(state.pending) - 1:,} after it"
        self._collector.report_error(error)
        for tup in state.pending.values():
            self._collector.fail(tup)
        self._child = None
        self._state = _State(turn=0, deaths=state.deaths + 1, useless=state.useless + 1)
        if not self._worked and self._state.useless >= MOST_USELESS:
            raise UselessChildError(error)

    def _is_done(self) -> bool:
        state, child = self._state, self._child
        if child is None or child.queued:
            return False
        return not state.owed or not (state.pending or state.answers)

    # --- messages -----------------------------------------------------------------------------------------

    def _handle(self, message: Any) -> None:
        command, message = command_of(message)
        state = self._state
        if self._said is not None:
            self._report_said(message)
        if command in _WORK:
            self._worked, state.useless = True, 0
        state.said = 0 if command in ("ack", "fail", "sync") else state.said + 1
        if state.said > child_module.MOST_MESSAGES:
            raise ShellError(
                f"it sent more than {child_module.MOST_MESSAGES} messages without reading its input "
                "or saying that it is done"
            )
        if command == "emit":
            self._emit(message)
        elif command in ("ack", "fail"):
            name = text_of(message, "id")
            tup = state.pending.pop(name, None)
            if tup is None:
                raise ShellError(f"it sent {command} for {name!r:.100}, which it was not given or has settled")
            if command == "ack":
                self._collector.ack(tup)
                state.deaths = 0
            else:
                self._collector.fail(tup)
        elif command == "sync":
            state.owed = max(0, state.owed - 1)
            state.answers = True
        else:
            self._handle_common(command, message, self._hear_error)

    def _hear_error(self, error: ShellError) -> None:
        """Keeps an error of the child until its next message: most fail the tuple that it is about."""
        self._said = error

    def _report_said(self, following: Mapping[str, Any]) -> None:
        error, self._said = self._said, None
        if error is not None:
            error.input = self._about(following)
            self._collector.report_error(error)

    def _about(self, message: Mapping[str, Any]) -> str:
        """Returns the tuple that the child had in hand: the one that a message names, else the first of its tuples."""
        pending = self._state.pending
        tup = pending.get(str(message.get("id"))) or next(iter(pending.values()), None)
        return "" if tup is None else input_text(tup)

    def _emit(self, message: dict[str, Any]) -> None:
        emission = Emission(message)
        names = message.get("anchors") or []
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, list):
            raise ShellError(f'"anchors" of its emit must be a list of ids, not {names!r:.100}')
        pending = self._state.pending
        anchors = []
        for name in names:
            tup = pending.get(str(name))
            if tup is None:
                raise ShellError(f"it anchored a tuple to {name!r:.100}, which it was not given or has settled")
            anchors.append(tup)
        anchor = anchors[0] if len(anchors) == 1 else anchors or None
        try:
            if emission.task:
                self._collector.emit_direct(emission.task, emission.values, anchor, emission.stream)
                return
            tasks = self._collector.emit(emission.values, anchor, emission.stream)
        except StormError as error:
            raise ShellError(f"it emitted what can't be sent: {error}") from error
        if emission.need_task_ids and self._child is not None:
            self._child.send(self._framing.encode(list(tasks)))
