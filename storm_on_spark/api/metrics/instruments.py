"""The instruments of Storm's metrics v2: counters, gauges, meters, histograms and timers.

An instrument belongs to one task in one process. The next report sends what it has counted since the last one, and the
driver adds this up over processes; `get_count` returns the count of this process only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from operator import index
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, NoReturn

from storm_on_spark.api.metrics.rates import SAMPLES, Rates, Snapshot
from storm_on_spark.api.text.wording import kind_of


class Instrument(ABC):
    """The common base of instruments; `TopologyContext.register_counter` and similar methods make them.

    Args:
        name: the name under which it is registered.
    """

    kind: ClassVar[str]
    """Its name in reports."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    @abstractmethod
    def changes(self) -> Any:
        """Returns the changes since the last call, in built-in types; None if there are none."""

    @abstractmethod
    def saved(self) -> Any:
        """Returns the data that `back_to` needs."""

    @abstractmethod
    def back_to(self, saved: Any) -> None:
        """Forgets what was recorded since `saved` returned this, because the work will be done again."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the {self.kind} {self.name!r} belongs to one task in one process and can't be pickled")


class Counter(Instrument):
    """A number that goes up and down.

    Example:
        >>> counter = Counter("orders")
        >>> counter.inc(); counter.inc(5); counter.dec(2)
        >>> counter.get_count()
        4
    """

    kind = "counter"

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._count = 0
        #: The last reported number; None before the first report, which also reports 0.
        self._reported: int | None = None

    def inc(self, n: int = 1) -> None:
        """Adds `n`."""
        self._count += index(n)

    def dec(self, n: int = 1) -> None:
        """Subtracts `n`."""
        self._count -= index(n)

    def get_count(self) -> int:
        """Returns the number that this process has counted."""
        return self._count

    def changes(self) -> int | None:
        """Returns the change since the last call."""
        first, count = self._reported is None, self._count
        new, self._reported = count - (self._reported or 0), count
        return new if new or first else None

    def saved(self) -> int:
        """Returns the number."""
        return self._count

    def back_to(self, saved: int) -> None:
        """Sets the number back."""
        self._count = saved


class Gauge(Instrument):
    """A value that each report reads.

    Args:
        name: the name under which it is registered.
        source: a function without parameters, or an object with a method `get_value`.

    Raises:
        TypeError: `source` is neither.

    Example:
        >>> queue = [1, 2, 3]
        >>> Gauge("waiting", lambda: len(queue)).get_value()
        3
    """

    kind = "gauge"

    def __init__(self, name: str, source: Any) -> None:
        super().__init__(name)
        method = getattr(source, "get_value", source)
        if not callable(method):
            raise TypeError(f"a gauge takes a function, or an object with get_value(), not {kind_of(source)}")
        self.source = source
        self._ask: Callable[[], Any] = method

    def get_value(self) -> Any:
        """Returns the present value."""
        return self._ask()

    def changes(self) -> Any:
        """Returns the present value."""
        return self._ask()

    def saved(self) -> None:
        """Returns nothing: a gauge keeps no value."""

    def back_to(self, saved: None) -> None:
        """Does nothing."""


class Meter(Instrument):
    """Counts events and measures their rate.

    Example:
        >>> meter = Meter("requests")
        >>> meter.mark(); meter.mark(2)
        >>> meter.get_count()
        3
    """

    kind = "meter"

    def __init__(self, name: str = "", now: Callable[[], float] = monotonic) -> None:
        super().__init__(name)
        self._rates = Rates(now)
        self._reported: int | None = None

    def mark(self, n: int = 1) -> None:
        """Counts `n` events that happened now."""
        self._rates.mark(index(n))

    def get_count(self) -> int:
        """Returns the number of events that this process has counted."""
        return self._rates.count

    def get_mean_rate(self) -> float:
        """Returns the events per second since the meter was made."""
        return self._rates.summary()["mean_rate"]

    def get_one_minute_rate(self) -> float:
        """Returns the events per second, as a moving average over a minute."""
        return self._rates.summary()["m1_rate"]

    def get_five_minute_rate(self) -> float:
        """Returns the events per second, as a moving average over 5 minutes."""
        return self._rates.summary()["m5_rate"]

    def get_fifteen_minute_rate(self) -> float:
        """Returns the events per second, as a moving average over 15 minutes."""
        return self._rates.summary()["m15_rate"]

    def changes(self) -> int | None:
        """Returns the number of events since the last call."""
        first, count = self._reported is None, self._rates.count
        new, self._reported = count - (self._reported or 0), count
        return new if new or first else None

    def saved(self) -> int:
        """Returns the number of events."""
        return self._rates.count

    def back_to(self, saved: int) -> None:
        """Sets the count back, but not the rates of this process."""
        self._rates.count = saved


class Histogram(Instrument):
    """The distribution of values; percentiles cover the last 1,028 values.

    Example:
        >>> histogram = Histogram("sizes")
        >>> for size in (10, 20, 90):
        ...     histogram.update(size)
        >>> histogram.get_count(), histogram.get_snapshot().get_mean()
        (3, 40.0)
    """

    kind = "histogram"

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._values: deque[float] = deque(maxlen=SAMPLES)
        self._count = 0
        self._reported: int | None = None

    def update(self, value: float) -> None:
        """Adds a value."""
        self._values.append(float(value))
        self._count += 1

    def get_count(self) -> int:
        """Returns the number of values that this process has seen."""
        return self._count

    def get_snapshot(self) -> Snapshot:
        """Returns the distribution of the last values that this process has seen."""
        return Snapshot(self._values)

    def changes(self) -> tuple[int, list[float]] | None:
        """Returns the number of values since the last call, and the last of these values."""
        first, count = self._reported is None, self._count
        new, self._reported = count - (self._reported or 0), count
        if not new:
            return (0, []) if first else None
        return new, list(self._values)[-new:]

    def saved(self) -> tuple[int, list[float]]:
        """Returns the number of values and the last ones."""
        return self._count, list(self._values)

    def back_to(self, saved: tuple[int, list[float]]) -> None:
        """Sets the number and the values back."""
        self._count = saved[0]
        self._values = deque(saved[1], SAMPLES)


class Timer(Histogram):
    """The distribution of durations, and their rate. Reports give durations in milliseconds.

    Args:
        name: the name under which it is registered.
        now: returns monotonic seconds.

    Example:
        >>> timer = Timer("look-up")
        >>> with timer.time():
        ...     found = {"a": 1}["a"]
        >>> timer.update(0.25)
        >>> timer.get_count(), timer.get_snapshot().get_max()
        (2, 0.25)
    """

    kind = "timer"

    def __init__(self, name: str = "", now: Callable[[], float] = monotonic) -> None:
        super().__init__(name)
        self._now = now
        self._rates = Rates(now)

    def update(self, value: float) -> None:
        """Adds a duration, in seconds."""
        super().update(value)
        self._rates.mark()

    def time(self) -> TimerContext:
        """Starts a measurement: `with timer.time(): ...`, or `context = timer.time()` and `context.stop()`."""
        return TimerContext(self, self._now)

    def get_mean_rate(self) -> float:
        """Returns the durations per second since the timer was made."""
        return self._rates.summary()["mean_rate"]

    def get_one_minute_rate(self) -> float:
        """Returns the durations per second, as a moving average over a minute."""
        return self._rates.summary()["m1_rate"]


class TimerContext:
    """One measurement of a `Timer`."""

    def __init__(self, timer: Timer, now: Callable[[], float]) -> None:
        self._timer = timer
        self._now = now
        self._began = now()

    def stop(self) -> float:
        """Adds the time since the measurement began to the timer, and returns it in seconds."""
        seconds = self._now() - self._began
        self._timer.update(seconds)
        return seconds

    close = stop

    def __enter__(self) -> TimerContext:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


INSTRUMENTS: dict[str, type[Instrument]] = {made.kind: made for made in (Counter, Meter, Histogram, Timer)}
"""The instruments that need only a name, by kind."""
