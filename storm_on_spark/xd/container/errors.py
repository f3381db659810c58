"""The errors of one instance: equal errors are logged once per interval, with their count and the last input."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from storm_on_spark.api.text.traces import own_trace, summary, whole_trace
from storm_on_spark.runtime.reports.groups import Group, Groups
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.runtime.reports.shown_values import values_text
from storm_on_spark.xd.bus.journal import Message
from storm_on_spark.xd.modules.messages.message import FIELDS

logger = logging.getLogger(__name__)

_INTERVAL_SECS: Final = 10.0
_MOST_GROUPS: Final = 10


class ExecuteError(Exception):
    """A message can't be processed now.

    Args:
        failure: the record to log.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_of(label: str, what: str, error: BaseException | None = None, given: str = "") -> Failure:
    """Returns the record to log for an error of a module.

    Args:
        label: the module's.
        what: the failed action.
        error: the exception, if there is one.
        given: its input.

    Example:
        >>> failure_of("sum", "failed in ack", ValueError("no"), "message id 7").message
        'sum failed in ack: ValueError: no'
    """
    if error is None:
        return Failure(label, None, f"{label} {what}".strip(), fatal=False, input=given)
    text = f"{label} {what}: {summary(error)}"
    return Failure(label, None, text, whole_trace(error), False, own_trace(error), given)


def message_text(message: Message) -> str:
    """Returns a message in one line of at most 200 characters, without secrets."""
    return values_text((message.payload, message.headers), FIELDS)


class Errors:
    """Logs the errors of one instance. Not thread-safe.

    Args:
        name: of the instance.
        clock: seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._groups = Groups(_MOST_GROUPS, forgets=True)
        #: Groups with errors that were not logged yet.
        self._waiting: list[Group] = []

    def add(self, failure: Failure) -> None:
        """Logs an error. If an equal one was logged recently, only a count is logged later."""
        group = self._groups.add(failure, time.time())
        assert group is not None
        if not any(group is each for each in self._waiting):
            self._waiting.append(group)
        self.tell()

    def tell(self, *, everything: bool = False) -> None:
        """Logs the groups whose interval has passed, or all groups."""
        if not self._waiting:
            return
        now = self._clock()
        left = []
        for group in self._waiting:
            if not everything and group.logged_at is not None and now - group.logged_at < _INTERVAL_SECS:
                left.append(group)
                continue
            told = group.to_log(now)
            logger.warning("%s: %s", self._name, told.text, extra={"whole_trace": told.trace})
        self._waiting = left
