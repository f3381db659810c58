"""The definition of a window: its length, its slide, and whether it uses the tuples' time or the topology's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.tuple import Tuple

_MOST_MS: Final = (1 << 31) - 1
"""As in Storm, where a duration is an `int` of milliseconds."""
_DEFAULT_WATERMARK_MS: Final = 1000


@dataclass(frozen=True)
class Count:
    """A number of tuples.

    Example:
        >>> Count(30), Count.of(30) == Count(30)
        (Count(value=30), True)
    """

    value: int

    def __post_init__(self) -> None:
        _check(self.value, "a Count")

    @classmethod
    def of(cls, value: int) -> Count:
        """Storm's spelling."""
        return cls(value)


@dataclass(frozen=True)
class Duration:
    """A span of time, in milliseconds.

    Example:
        >>> Duration.seconds(3), Duration.minutes(1).value
        (Duration(value=3000), 60000)
    """

    value: int

    def __post_init__(self) -> None:
        _check(self.value, "a Duration, in milliseconds,")
        if self.value > _MOST_MS:
            raise InvalidTopologyError(f"a Duration is at most {_MOST_MS} ms, as in Storm, not {self.value}")

    @classmethod
    def of(cls, milliseconds: int) -> Duration:
        """Storm's spelling."""
        return cls(milliseconds)

    @classmethod
    def milliseconds(cls, number: int) -> Duration:
        """Returns a duration of this many milliseconds."""
        return cls(number)

    @classmethod
    def seconds(cls, number: float) -> Duration:
        """Returns a duration of this many seconds."""
        return cls(_ms(number, 1000))

    @classmethod
    def minutes(cls, number: float) -> Duration:
        """Returns a duration of this many minutes."""
        return cls(_ms(number, 60_000))

    @classmethod
    def hours(cls, number: float) -> Duration:
        """Returns a duration of this many hours."""
        return cls(_ms(number, 3_600_000))

    @classmethod
    def days(cls, number: float) -> Duration:
        """Returns a duration of this many days."""
        return cls(_ms(number, 86_400_000))


TimestampExtractor = Callable[[Tuple], int]
"""A function that returns a tuple's time in milliseconds, or an object with Storm's `extract_timestamp`."""

Extent = Count | Duration
"""The type of a window's length and slide."""


def _ms(number: float, unit: int) -> Any:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return number  # refused by `Duration`
    exact = number * unit
    return int(exact) if exact == int(exact) else exact


def _check(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidTopologyError(f"{what} must be a whole number of at least 0, not {kind_of(value)}")


@dataclass(frozen=True)
class WindowSettings(Settings):
    """The settings of a windowed bolt."""

    length_count: Annotated[int | None, Config.TOPOLOGY_BOLTS_WINDOW_LENGTH_COUNT]
    length_ms: Annotated[int | None, Config.TOPOLOGY_BOLTS_WINDOW_LENGTH_DURATION_MS]
    slide_count: Annotated[int | None, Config.TOPOLOGY_BOLTS_SLIDING_INTERVAL_COUNT]
    slide_ms: Annotated[int | None, Config.TOPOLOGY_BOLTS_SLIDING_INTERVAL_DURATION_MS]
    late_stream: Annotated[str | None, Config.TOPOLOGY_BOLTS_LATE_TUPLE_STREAM]
    lag_ms: Annotated[int | None, Config.TOPOLOGY_BOLTS_TUPLE_TIMESTAMP_MAX_LAG_MS]
    watermark_ms: Annotated[int | None, Config.TOPOLOGY_BOLTS_WATERMARK_EVENT_INTERVAL_MS]
    timeout_secs: Annotated[int, Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]
    timeouts: Annotated[bool, Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS]
    max_pending: Annotated[int | None, Config.TOPOLOGY_MAX_SPOUT_PENDING]


@dataclass(frozen=True)
class WindowDefinition:
    """A valid window.

    Args:
        length: of the window.
        slide: of the window.
        event_time: whether tuples bring their time.
        lag_ms: how far their timestamps may be out of order.
        watermark_ms: how often the watermark advances.
        late_stream: the stream for late tuples; None to log them.
        idle_ms: how long a stream may be silent before it no longer holds back the watermark; None for ever.

    Example:
        >>> WindowDefinition(Duration.seconds(10), Duration.seconds(5)).timers
        {'window': 5000}
        >>> str(WindowDefinition(Count(10), Count(1)))
        '10 tuples, sliding by 1 tuple'
    """

    length: Extent
    slide: Extent
    event_time: bool = False
    lag_ms: int = 0
    watermark_ms: int = _DEFAULT_WATERMARK_MS
    late_stream: str | None = None
    idle_ms: int | None = None

    @classmethod
    def of(
        cls, settings: WindowSettings, *, event_time: bool, idle_ms: int | None = None, holds: bool = True
    ) -> WindowDefinition:
        """Returns the window of a bolt's configuration.

        Args:
            settings: the configuration.
            event_time: whether tuples bring their time.
            idle_ms: as above.
            holds: whether tuples stay pending as long as they are in the window.

        Raises:
            InvalidTopologyError: there is no length, or Storm's rules forbid the window.
        """
        length = _extent(settings.length_count, settings.length_ms)
        if length is None:
            raise InvalidTopologyError("the window has no length; call with_window or with_tumbling_window")
        slide = _extent(settings.slide_count, settings.slide_ms) or Count(1)
        if settings.late_stream is not None and not event_time:
            raise InvalidTopologyError(
                f'late tuples can go to stream "{settings.late_stream}" only if tuples bring their time; call '
                "with_timestamp_field or with_timestamp_extractor"
            )
        if holds:
            _check_pending(length, slide, settings)
        return cls(
            length,
            slide,
            event_time,
            settings.lag_ms or 0,
            settings.watermark_ms or _DEFAULT_WATERMARK_MS,
            settings.late_stream,
            idle_ms,
        )

    @property
    def timers(self) -> dict[str, int]:
        """The timers of the bolt: names and periods, in ms."""
        if self.event_time:
            return {"watermark": self.watermark_ms}
        if isinstance(self.slide, Duration):
            return {"window": self.slide.value}
        if isinstance(self.length, Duration):
            return {"expiry": self.length.value}  # without it, nothing advances the time by which tuples leave
        return {}

    def __str__(self) -> str:
        text = f"{_shown(self.length)}, sliding by {_shown(self.slide)}"
        return f"{text}, by the time that tuples bring" if self.event_time else text


def _shown(extent: Extent) -> str:
    unit = "ms" if isinstance(extent, Duration) else "tuple" if extent.value == 1 else "tuples"
    return f"{extent.value} {unit}"


def _extent(count: int | None, ms: int | None) -> Extent | None:
    if count is not None:
        return Count(count)
    return None if ms is None else Duration(ms)


def _check_pending(length: Extent, slide: Extent, settings: WindowSettings) -> None:
    """Checks, as Storm does, that the message timeout and the limit of pending messages allow the window."""
    extents = (length, slide)
    ms = sum(extent.value for extent in extents if isinstance(extent, Duration))
    if settings.timeouts and ms > 1000 * settings.timeout_secs:
        raise InvalidTopologyError(
            f"the window's length and slide take {ms} ms, which is more than {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS} = "
            f"{settings.timeout_secs}: its tuples would fail before they leave the window; raise the timeout, or make "
            "the window shorter"
        )
    count = sum(extent.value for extent in extents if isinstance(extent, Count))
    if settings.max_pending is not None and count > settings.max_pending:
        raise InvalidTopologyError(
            f"the window's length and slide are {count} tuples, which is more than {Config.TOPOLOGY_MAX_SPOUT_PENDING} "
            f"= {settings.max_pending}: the spout would wait before the window is full; raise the limit, or make the "
            "window shorter"
        )
