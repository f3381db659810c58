"""Windows of streams, with Storm's names."""

from __future__ import annotations

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.graph.model import Window
from storm_on_spark.windowing.definition import Count, Duration, Extent


class SlidingWindows(Window):
    """Windows that slide by less than their length; Storm's `SlidingWindows`."""

    @classmethod
    def of(cls, length: Extent, slide: Extent) -> SlidingWindows:
        """Returns windows of a number of values, or of a span of time.

        Args:
            length: a `Count` or a `Duration`.
            slide: the number of values, or the time, after which a new window begins.

        Example:
            >>> SlidingWindows.of(Duration.minutes(10), Duration.minutes(1)).with_timestamp_field("ts").slide
            Duration(value=60000)
        """
        return cls(_extent(length, "length"), _extent(slide, "slide"))


class TumblingWindows(Window):
    """Windows that each begin where the previous one ends; Storm's `TumblingWindows`."""

    @classmethod
    def of(cls, length: Extent) -> TumblingWindows:
        """Returns windows of a number of values, or of a span of time.

        Args:
            length: a `Count` or a `Duration`.

        Example:
            >>> TumblingWindows.of(Count(10)).length
            Count(value=10)
        """
        return cls(_extent(length, "length"), length)


def _extent(given: object, what: str) -> Extent:
    if not isinstance(given, (Count, Duration)) or not given.value:
        raise InvalidTopologyError(
            f"the {what} of a window is a positive Count or Duration, as in Duration.seconds(10), not {kind_of(given)}"
        )
    return given
