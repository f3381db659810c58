"""Event loggers of users: the thread of the driver that gives them samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.metrics.event_logger import EventInfo, IEventLogger
from storm_on_spark.runtime.reports.listeners import Listeners
from storm_on_spark.runtime.reports.named_classes import entries_of, made
from storm_on_spark.runtime.samples.book import SampleBook
from storm_on_spark.runtime.samples.events import TupleEvent

KEY: Final = "topology.event.logger.register"
_STORMS: Final = "org.apache.storm.metric.FileBasedEventLogger"
_EVERY_SECS: Final = 1.0


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


class EventLoggers(Listeners[IEventLogger]):
    """Gives event loggers the tuples that were sampled.

    Args:
        loggers: prepared ones.
        book: has the samples.
        every_secs: seconds between two looks.
    """

    kind = "event logger"

    def __init__(self, loggers: Sequence[IEventLogger], book: SampleBook, every_secs: float = _EVERY_SECS) -> None:
        super().__init__(loggers, every_secs)
        self._book = book
        self._news = book.follow()

    def tell(self) -> None:
        """Passes the tuples that were sampled since the last call to all loggers."""
        self._book.gather()
        while self._news:
            event = self._news.popleft()
            if event.kind == "emit":
                info = _info(event)
                self.each(lambda logger: logger.log(info))  # noqa: B023 # called at once

    def end(self, listener: IEventLogger) -> None:
        """Calls `close`."""
        listener.close()


def _info(event: TupleEvent) -> EventInfo:
    return EventInfo(event.time, event.component, event.task, event.message_id, event.values, event.stream)
