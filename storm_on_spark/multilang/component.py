"""What `ShellBolt` and `ShellSpout` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.logs import component_logger
from storm_on_spark.multilang.child import Child, Launch, checked_command, run_in
from storm_on_spark.multilang.errors import ShellError
from storm_on_spark.multilang.messages import log_message, setup_message
from storm_on_spark.multilang.settings import ShellSettings, silence
from storm_on_spark.runtime.processes.ending.at_once import make_temporary, remove_temporary

log = component_logger(__name__)

OutputFields = Fields | str | Sequence[str] | Mapping[str, Fields | str | Sequence[str]]
"""Fields of the default stream, or of each stream by its id."""


class ShellComponent:
    """A command, its output fields, and the child that executes it for one task.

    Args:
        command: program and arguments; never a line for a shell.
        output_fields: the fields of the default stream, or of each stream by its id.
        direct_streams: those of the streams that are direct.
        directory: the child's working directory; unset, the folder `resources` of the code, as in Storm, or one on
            Python's module search path that has a file of the command, or the worker's own.
        environment: variables for the child, beside those of its worker.

    Raises:
        ShellError: the command is not a list of strings.
    """

    def __init__(
        self,
        command: Sequence[str],
        output_fields: OutputFields = (),
        *,
        direct_streams: Iterable[str] = (),
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = checked_command(command, type(self).__name__)
        plain = not isinstance(output_fields, Mapping)
        self._streams = {DEFAULT_STREAM: output_fields} if plain and output_fields else {}
        if isinstance(output_fields, Mapping):
            self._streams = dict(output_fields)
        self._direct = frozenset(direct_streams)
        self._directory = directory
        self._environment = dict(environment or {})
        self._child: Child | None = None

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares what the constructor was given; override it to declare streams in code."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields, stream in self._direct)

    @property
    def pid(self) -> int | None:
        """The id of the process that leads the child's session and ends with it; None while there is none."""
        return None if self._child is None else self._child.pid

    def on_metric(self, name: str, params: Any) -> None:
        """Called with a metric that the child sends; reports it unless overridden, as `TopologyInfo` shows it."""
        try:
            self._context.metrics.report(name, params)
        except (StormError, TypeError, ValueError) as error:  # of a metric, which must not fail a tuple
            log.warning("%s: metric %s: %s is not reported: %s", self._label, name, params, error)

    # --- the child ----------------------------------------------------------------------------------------

    def _set_up(self, conf: Mapping[str, Any], context: TopologyContext, idle: bool) -> None:
        settings = ShellSettings.of(conf)
        name = f"{context.this_component_id}:{context.this_task_id}"
        self._label = f"[{name}] "
        self._max_pending = settings.max_pending
        self._context, self._conf = context, conf
        #: Removed by `cleanup` where the context names no folder of a run.
        self._own_folder = None if context.pid_dir else make_temporary("storm-on-spark-run-")
        self._launch = Launch(
            command=self._command,
            folder=self._own_folder or Path(context.pid_dir or ""),
            name=f"task-{context.this_task_id}",
            label=self._label,
            directory=run_in(self._directory, self._command),
            environment=self._environment,
            serializer=settings.serializer,
            timeout_secs=silence(conf),
            idle=idle,
        )

    def _start(self) -> Child:
        conf, context = self._conf, self._context
        return Child.start(self._launch, lambda pids: setup_message(conf, context, pids))

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None
        if folder := self.__dict__.get("_own_folder"):
            remove_temporary(folder)

    def _handle_common(self, command: str, message: Mapping[str, Any], report: Any) -> None:
        """Does what a message says that bolts and spouts send alike.

        Raises:
            ShellError: the command is unknown.
        """
        if command == "log":
            log_message(log, self._label.strip(), message)
        elif command == "error":
            report(ShellError(f"{message.get('msg')}"))
        elif command == "metrics":
            self.on_metric(str(message.get("name")), message.get("params"))
        else:
            raise ShellError(f"it sent the unknown command {command!r:.100}")
