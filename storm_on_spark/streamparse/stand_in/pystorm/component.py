"""What pystorm's spouts and bolts have in common.

A component speaks in messages, as over Storm's pipe: `emit` makes a message and gives it to `send_message`. In a
topology here `storm_on_spark.streamparse.components.bridge` replaces `send_message` and the reading of messages, so
nothing is serialised. A component that was given streams, as in a test, reads and writes them as pystorm's do.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

from storm_on_spark.streamparse.stand_in.pystorm.exceptions import StormWentAwayError
from storm_on_spark.streamparse.stand_in.pystorm.serializers.json_serializer import JSONSerializer
from storm_on_spark.streamparse.stand_in.pystorm.serializers.msgpack_serializer import MsgpackSerializer
from storm_on_spark.streamparse.stand_in.pystorm.serializers.serializer import Serializer

log = logging.getLogger(__name__)

_SERIALIZERS: dict[str, type[Serializer]] = {"json": JSONSerializer, "msgpack": MsgpackSerializer}

_STORM_LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}
_INFO = 2

_PYTHON_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


class Tuple(NamedTuple):
    """A tuple as a bolt of pystorm receives it."""

    id: Any
    """Names the tuple, to ack it, fail it, or anchor to it."""
    component: str
    """The component that emitted it."""
    stream: str
    task: int
    """The task that emitted it."""
    values: Any
    """A tuple of the values; a named one where the fields of the stream are known."""


class StormHandler(logging.Handler):
    """A handler of `logging` that sends records to Storm."""

    def __init__(self, serializer: Serializer) -> None:
        super().__init__()
        self.serializer = serializer

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one record."""
        try:
            level = _STORM_LEVELS.get(record.levelname.lower(), _INFO)
            self.serializer.send_message({"command": "log", "msg": self.format(record), "level": level})
        except Exception:
            self.handleError(record)


class Component:
    """A spout or bolt.

    Args:
        input_stream: where messages come from, if the component runs by itself.
        output_stream: where its messages go.
        rdb_signal: without effect: `storm-spark run --debugger` debugs components.
        serializer: `json` or `msgpack`.
    """

    exit_on_exception: ClassVar[bool] = True
    """Whether an exception ends the worker. If not, the component continues with the next message."""

    def __init__(
        self,
        input_stream: Any = None,
        output_stream: Any = None,
        rdb_signal: Any = None,
        serializer: str = "json",
    ) -> None:
        if serializer not in _SERIALIZERS:
            raise ValueError(f"Unknown serializer: {serializer!r}; there are {', '.join(_SERIALIZERS)}")
        self.topology_name: str | None = None
        self.task_id: int | None = None
        self.component_name: str | None = None
        self.debug: bool | None = None
        self.storm_conf: Mapping[str, Any] | None = None
        self.context: Mapping[str, Any] | None = None
        self.pid = os.getpid()
        self.logger: Any = None
        self._pending_commands: deque[Any] = deque()
        self._pending_task_ids: deque[Any] = deque()
        self._reader_lock, self._writer_lock = threading.RLock(), threading.RLock()
        self.serializer = _SERIALIZERS[serializer](
            sys.stdin if input_stream is None else input_stream,
            sys.stdout if output_stream is None else output_stream,
            self._reader_lock,
            self._writer_lock,
        )

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Whether a tuple is Storm's question whether the component is alive."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    def _setup_component(self, storm_conf: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self.storm_conf, self.context = storm_conf, context
        self.topology_name = storm_conf.get("topology.name", "")
        self.task_id = context.get("taskid", "")
        name = context.get("componentid")
        if name is None:
            name = context.get("task->component", {}).get(str(self.task_id), "")
        self.component_name = name
        self.debug = storm_conf.get("topology.debug", False)
        level = "debug" if self.debug else storm_conf.get("pystorm.log.level", "info")
        self.logger = logging.getLogger(f"pystorm.component.{name}")
        self.logger.setLevel(_PYTHON_LEVELS.get(level, logging.INFO))

    # --- messages ---------------------------------------------------------------

    def read_message(self) -> Any:
        """Returns the next message, whatever it is."""
        return self.serializer.read_message()

    def read_task_ids(self) -> Any:
        """Returns the task ids of an emit; commands that come first are kept."""
        if self._pending_task_ids:
            return self._pending_task_ids.popleft()
        while not isinstance(message := self.read_message(), list):
            self._pending_commands.append(message)
        return message

    def read_command(self) -> Any:
        """Returns the next command; task ids that come first are kept."""
        if self._pending_commands:
            return self._pending_commands.popleft()
        while isinstance(message := self.read_message(), list):
            self._pending_task_ids.append(message)
        return message

    def read_handshake(self) -> Any:
        """Returns configuration and context; leaves a file with the process id as its name, as Storm wants."""
        message = self.read_message()
        Path(message["pidDir"], str(self.pid)).touch()
        self.send_message({"pid": self.pid})
        return message["conf"], message["context"]

    def send_message(self, message: Any) -> None:
        """Sends a message, which must be a dict; anything else is logged and left out."""
        if isinstance(message, dict):
            self.serializer.send_message(message)
        else:
            (self.logger or log).error(
                "%s.%d attempted to send a non dict message to Storm: %r", self.component_name, self.pid, message
            )

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Reports an exception, with the traceback of the one that is being handled."""
        what = f" while processing Tuple {tup!r}" if tup else ""
        message = f"Python {type(exception).__name__} raised{what}\n{traceback.format_exc()}"
        self.send_message({"command": "error", "msg": message})
        self.send_message({"command": "sync"})

    def report_metric(self, name: str, value: Any) -> None:
        """Reports a value of a metric."""
        self.send_message({"command": "metrics", "name": name, "params": value})

    def log(self, message: object, level: str | None = None) -> None:
        """Logs a message, whatever the level of the logger is."""
        number = _STORM_LEVELS.get(level or "info", _INFO)
        self.send_message({"command": "log", "msg": str(message), "level": number})

    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a tuple.

        Returns:
            The tasks that receive it if `need_task_ids`, otherwise None.

        Raises:
            TypeError: `tup` is neither a list nor a tuple.
        """
        if not isinstance(tup, (list, tuple)):
            raise TypeError(f"All Tuples must be either lists or tuples, received {type(tup)!r} instead.")
        message: dict[str, Any] = {"command": "emit", "tuple": tup}
        given = {"anchors": anchors, "id": tup_id, "stream": stream, "task": direct_task}
        message.update({key: value for key, value in given.items() if value is not None})
        if not need_task_ids:
            # Without it, Storm answers.
            message["need_task_ids"] = False
            self.send_message(message)
            return None
        if direct_task is not None:
            self.send_message(message)
            return [direct_task]
        # Another thread must not read the answer to this emit.
        with self._reader_lock, self._writer_lock:
            self.send_message(message)
            tasks: list[int] = self.read_task_ids()
            return tasks

    # --- running by itself ---------------------------------------------------------------

    def initialize(self, storm_conf: Any, context: Any) -> None:
        """Called before the first message; for users to override."""

    def _run(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        """Takes part in Storm's protocol until the pipe closes or something raises."""
        conf, context = self.read_handshake()
        self._setup_component(conf, context)
        self.initialize(conf, context)
        while True:
            try:
                self._run()
            except StormWentAwayError:
                self._leave()
            except Exception as error:
                self._after(error)
                if self.exit_on_exception:
                    self._exit(1)

    def _after(self, error: Exception) -> None:
        text = f"Exception in {type(self).__name__}.run()"
        trace = sys.exc_info()
        try:
            self.logger.error(text, exc_info=True)
            self._handle_run_exception(error)
        except StormWentAwayError:
            log.error(text, exc_info=trace)
            self._leave()
        except Exception:
            log.error(text, exc_info=trace)
            log.error("While trying to handle previous exception...", exc_info=sys.exc_info())

    def _leave(self) -> NoReturn:
        log.info("Exiting because parent Storm process went away.")
        self._exit(2)

    def _exit(self, status_code: int) -> NoReturn:
        if threading.active_count() > 1:
            os._exit(status_code)  # Other threads would keep the process.
        sys.exit(status_code)

    def _handle_run_exception(self, exc: BaseException) -> None:
        self.raise_exception(exc)
