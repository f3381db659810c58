"""Event loggers of users: the thread of the driver that gives them samples."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.metrics.event_logger import EventInfo, IEventLogger
from storm_on_spark.runtime.reports.named_classes import entries_of, made
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.runtime.samples.events import TupleEvent

log = logging.getLogger(__name__)

KEY: Final = "topology.event.logger.register"
_STORMS: Final = "org.apache.storm.metric.FileBasedEventLogger"
_EVERY_SECS: Final = 1.0
_END_SECS: Final = 15.0


class _Filed(IEventLogger):
    """Storm's own: the driver of a cluster writes all samples to `events.log`, whether it is named or not."""

    def log(self, event: EventInfo) -> None:
        """Does nothing: the tuple is in the file."""


def loggers_of(registered: object, conf: Mapping[str, Any]) -> list[IEventLogger]:
    """Returns the prepared event loggers of a topology.

    Args:
        registered: the value of `topology.event.logger.register`.
        conf: of the topology.

    Raises:
        ConfigError: one can't be made.
    """
    found: list[IEventLogger] = []
    for name, arguments in entries_of(KEY, registered, "arguments"):
        if not (arguments is None or isinstance(arguments, Mapping)):
            raise ConfigError(f"{KEY}: the arguments of {name} are a mapping, not {arguments!r:.200}", key=KEY)
        logger = _Filed() if name == _STORMS else made(KEY, name, IEventLogger)  # type: ignore[type-abstract]
        logger.prepare(conf, arguments or {})
        found.append(logger)
    return found


class EventLoggers:
    """Calls event loggers on a separate thread, so that a slow one does not delay the topology.

    Args:
        loggers: prepared ones.
        book: has the samples.
        every_secs: seconds between two looks.
    """

    def __init__(self, loggers: Sequence[IEventLogger], book: SampleBook, every_secs: float = _EVERY_SECS) -> None:
        self._loggers = loggers
        self._book = book
        self._news = book.follow()
        self._every_secs = every_secs
        self._ends = threading.Event()
        self._failed: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="event-loggers", daemon=True)

    def start(self) -> None:
        """Starts to call the loggers."""
        self._thread.start()

    def close(self) -> None:
        """Passes the last samples and closes the loggers. Waits at most 15 s for one that hangs."""
        self._ends.set()
        self._thread.join(_END_SECS)

    def _run(self) -> None:
        while not self._ends.wait(self._every_secs):
            self._tell()
        self._tell()
        for number, logger in enumerate(self._loggers):
            self._guarded(number, logger.close)

    def _tell(self) -> None:
        """Passes the tuples that were sampled since the last call to all loggers."""
        self._book.gather()
        while self._news:
            event = self._news.popleft()
            if event.kind == "emit":
                for number, logger in enumerate(self._loggers):
                    self._guarded(number, partial(logger.log, _info(event)))

    def _guarded(self, number: int, call: Callable[[], None]) -> None:
        """Calls a logger; logs its first error."""
        try:
            call()
        except Exception as error:  # whatever it raises
            if number not in self._failed:
                self._failed.add(number)
                name = type(self._loggers[number]).__name__
                log.warning("the event logger %s raised; further errors are not logged: %r", name, error)


def _info(event: TupleEvent) -> EventInfo:
    return EventInfo(event.time, event.component, event.task, event.message_id, event.values, event.stream)
