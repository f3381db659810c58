"""A spout whose work is done by a child process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.multilang.component import ShellComponent
from storm_on_spark.multilang.errors import MOST_USELESS, ShellError, UselessChildError
from storm_on_spark.multilang.messages import Emission, command_of

_MOST_BACKOFF_SECS = 5.0


class ShellSpout(ShellComponent, BaseRichSpout):
    """Executes a command as a spout, over Storm's multilang protocol.

    If the child ends, is silent for too long or breaks the protocol, the error is reported with its last lines of
    stderr, and it is started again. If several have ended before the first of them has answered a call for tuples, the
    topology fails. A new child isn't told of messages that an earlier one has emitted: the state of
    a child is its own affair, and one that must not lose messages reads them again from where they come.

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
        >>> spout = ShellSpout(["node", "sentences.js"], {"default": ["sentence"], "errors": ["text"]})
    """

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Starts the child."""
        self._set_up(conf, context, idle=False)
        self._collector = collector
        self._active = False
        #: Messages of the present child, by the text of their ids.
        self._emitted: set[str] = set()
        self._deaths = 0
        #: Whether any child has done something.
        self._worked = False
        self._not_before = 0.0
        self._opened = True
        self._ready()

    def next_tuple(self) -> None:
        """Asks the child for its next tuples."""
        self._ask("next", "")

    def ack(self, message_id: Any) -> None:
        """Tells the child that a message is complete."""
        self._settle("ack", message_id)

    def fail(self, message_id: Any) -> None:
        """Tells the child that a message has failed."""
        self._settle("fail", message_id)

    def activate(self) -> None:
        """Tells the child that it is asked from now on."""
        self._active = True
        self._ask("activate", "")

    def deactivate(self) -> None:
        """Tells the child that it is not asked from now on."""
        self._active = False
        self._ask("deactivate", "")

    def close(self) -> None:
        """Ends the child."""
        self._end()

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is saved: nothing of an open spout."""
        return {} if "_opened" in self.__dict__ else self.__dict__.copy()

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Takes what was saved."""
        self.__dict__.update(saved)

    def _settle(self, command: str, message_id: Any) -> None:
        if str(message_id) in self._emitted:
            self._emitted.discard(str(message_id))
            self._ask(command, message_id)

    def _ready(self) -> bool:
        """Starts the child if there is none and enough time has passed; returns whether there is one."""
        if self._child is None and time.monotonic() >= self._not_before:
            try:
                self._child = self._start()
            except ShellError as error:
                self._lost(error)
                return False
            if self._active:
                self._ask("activate", "")
        return self._child is not None

    def _ask(self, command: str, message_id: Any) -> None:
        """Sends a command, and does what the child says until it has done it."""
        if not self._ready():
            return
        child = self._child
        if child is None:
            return
        done: list[bool] = []

        def handle(message: Any) -> None:
            said, message = command_of(message)
            if said == "sync":
                done.append(True)
            elif said == "emit":
                self._emit(message)
            else:
                self._handle_common(said, message, self._collector.report_error)

        child.send(child.framing.encode({"command": command, "id": message_id}))
        try:
            child.ask()
            child.exchange(handle, lambda: bool(done) and not child.queued)
            if command == "next":
                self._deaths, self._worked = 0, True
        except ShellError as error:
            self._lost(child.ended(error))

    def _emit(self, message: dict[str, Any]) -> None:
        emission = Emission(message)
        message_id = message.get("id")
        if isinstance(message_id, (list, dict)):
            raise ShellError(f'"id" of its emit must be a string or a number, not {message_id!r:.100}')
        try:
            if emission.task:
                self._collector.emit_direct(emission.task, emission.values, message_id, emission.stream)
                tasks = None
            else:
                tasks = self._collector.emit(emission.values, message_id, emission.stream)
        except StormError as error:
            raise ShellError(f"it emitted what can't be sent: {error}") from error
        self._worked = True
        if message_id is not None:
            self._emitted.add(str(message_id))
        child = self._child
        if tasks is not None and emission.need_task_ids and child is not None:
            child.send(child.framing.encode(list(tasks)))

    def _lost(self, error: ShellError) -> None:
        self._child = None
        self._emitted.clear()
        self._not_before = time.monotonic() + min(0.1 * 2 ** min(self._deaths, 10), _MOST_BACKOFF_SECS)
        self._deaths += 1
        self._collector.report_error(error)
        if not self._worked and self._deaths >= MOST_USELESS:
            raise UselessChildError(error)
