"""Sources: spouts that begin a stream."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import Final

from storm_on_spark.xd.modules.dates import check_pattern, format_date
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.repeating import RepeatingSource


class PeriodicSource(RepeatingSource):
    """Emits a message at once, and another each time a delay has passed.

    Args:
        fixed_delay: seconds between two messages.
        max_messages: the number of messages; -1 for no end.
    """

    most_late = 0.0
    """Seconds by which a message may be late without shifting the following ones."""

    def __init__(self, fixed_delay: float, max_messages: int) -> None:
        super().__init__()
        self.fixed_delay = fixed_delay
        self.max_messages = max_messages
        self._sent = 0
        self._last: float | None = None

    @abstractmethod
    def payload(self, now: float) -> str:
        """Returns the next payload; `now` is in seconds since 1970."""

    def produce(self) -> None:
        """Sends a message if it is time."""
        now = self.now()
        # If the clock is set back, the source does not stop.
        since = None if self._last is None else now - self._last
        if self.ended() or (since is not None and 0 <= since < self.fixed_delay):
            return
        late = 0.0 if since is None or since < 0 else min(since - self.fixed_delay, self.most_late)
        self._last = now - late
        self._sent += 1
        self.send(self.payload(now), {})

    def ended(self) -> bool:
        """Returns whether all messages were emitted."""
        return 0 <= self.max_messages <= self._sent


class TimeSource(PeriodicSource):
    """Emits the time of this machine, in its zone."""

    def __init__(self, fixed_delay: float, format: str, max_messages: int) -> None:  # noqa: A002 # the option's name
        super().__init__(fixed_delay, max_messages)
        self.format = format

    def payload(self, now: float) -> str:
        """Returns the time in the form of the pattern."""
        return format_date(self.format, datetime.fromtimestamp(now).astimezone())


class TriggerSource(PeriodicSource):
    """Emits the same payload every time."""

    def __init__(self, payload: str, fixed_delay: float, max_messages: int) -> None:
        super().__init__(fixed_delay, max_messages)
        self.text = payload

    def payload(self, now: float) -> str:
        """Returns the payload."""
        return self.text


class RateSource(PeriodicSource):
    """Emits 0, 1, 2, ... as text; messages held back by a pause follow after it."""

    most_late = 1.0

    def __init__(self, messages_per_second: float, max_messages: int) -> None:
        super().__init__(1 / messages_per_second, max_messages)

    def payload(self, now: float) -> str:
        """Returns the number of the message, counted from 0."""
        return str(self._sent - 1)


def _not_zero(count: int) -> None:
    if count == 0:
        raise ValueError("Expected -1 for no end, or at least 1, got '0'")


_DELAY: Final = Option("fixedDelay", "number", "1", "Seconds between two messages.", minimum=0.001)
_COUNT: Final = Option(
    "maxMessages", "integer", "-1", "How many messages there are; -1 for no end.", minimum=-1, check=_not_zero
)

SOURCES: Final = (
    ModuleDeclaration(
        "source",
        "rate",
        "Emits 0, 1, 2, ... at a rate.",
        RateSource,
        (Option("messagesPerSecond", "number", "1", "Messages per second, at most.", minimum=0.001), _COUNT),
    ),
    ModuleDeclaration(
        "source",
        "time",
        "Emits the time.",
        TimeSource,
        (
            _DELAY,
            Option(
                "format", "text", "yyyy-MM-dd HH:mm:ss", "The pattern, as Java's SimpleDateFormat.", check=check_pattern
            ),
            _COUNT,
        ),
    ),
    ModuleDeclaration(
        "source",
        "trigger",
        "Emits a text again and again.",
        TriggerSource,
        (Option("payload", "text", "", "The text."), _DELAY, _COUNT),
    ),
)
