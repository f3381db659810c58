"""Storm's first metrics, for `TopologyContext.register_metric`: each report reads an object's value and resets it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class IMetric(Protocol):
    """A user-defined metric: any object with this method.

    Example:
        >>> class Temperature:
        ...     def get_value_and_reset(self):
        ...         return 21.5
        >>> isinstance(Temperature(), IMetric)
        True
    """

    def get_value_and_reset(self) -> Any:
        """Returns the value since the last call, and resets it."""
        ...


class CountMetric:
    """A count.

    Example:
        >>> count = CountMetric()
        >>> count.incr(); count.incr_by(4)
        >>> count.get_value_and_reset(), count.get_value_and_reset()
        (5, 0)
    """

    def __init__(self) -> None:
        self._value = 0

    def incr(self) -> None:
        """Adds 1."""
        self._value += 1

    def incr_by(self, n: int) -> None:
        """Adds `n`."""
        self._value += n

    def get_value_and_reset(self) -> int:
        """Returns the count, and resets it to 0."""
        value, self._value = self._value, 0
        return value

    def saved(self) -> int:
        """Returns the count without resetting it."""
        return self._value

    def back_to(self, saved: int) -> None:
        """Sets the count back, because the work will be done again."""
        self._value = saved

    def update_metric_from_rpc(self, value: Any) -> None:
        """Adds the number that a component in another language reports; None counts as 1."""
        self.incr_by(1 if value is None else int(value))


class MultiCountMetric:
    """Counts by name.

    Example:
        >>> counts = MultiCountMetric()
        >>> counts.scope("new").incr(); counts.scope("old").incr_by(2)
        >>> counts.get_value_and_reset()
        {'new': 1, 'old': 2}
    """

    def __init__(self) -> None:
        self._counts: dict[str, CountMetric] = {}

    def scope(self, key: str) -> CountMetric:
        """Returns the count with that name."""
        return self._counts.setdefault(key, CountMetric())

    def get_value_and_reset(self) -> dict[str, int]:
        """Returns the counts by name, and resets them."""
        return {key: count.get_value_and_reset() for key, count in self._counts.items()}

    def saved(self) -> dict[str, int]:
        """Returns the counts without resetting them."""
        return {key: count.saved() for key, count in self._counts.items()}

    def back_to(self, saved: dict[str, int]) -> None:
        """Sets the counts back, because the work will be done again."""
        for key, count in self._counts.items():
            count.back_to(saved.get(key, 0))


class AssignableMetric:
    """A value that code sets and that a report does not reset.

    Example:
        >>> depth = AssignableMetric(0)
        >>> depth.set_value(7)
        >>> depth.get_value_and_reset(), depth.get_value_and_reset()
        (7, 7)
    """

    def __init__(self, value: Any = None) -> None:
        self._value = value

    def set_value(self, value: Any) -> None:
        """Sets the value."""
        self._value = value

    def get_value_and_reset(self) -> Any:
        """Returns the value."""
        return self._value

    def update_metric_from_rpc(self, value: Any) -> None:
        """Sets the value that a component in another language reports."""
        self._value = value


class ICombiner(ABC):
    """Combines values of one kind; `combine` must be associative."""

    @abstractmethod
    def identity(self) -> Any:
        """Returns the value that changes nothing when it is combined with another."""

    @abstractmethod
    def combine(self, a: Any, b: Any) -> Any:
        """Returns the combination of both values."""


class IReducer(ABC):
    """Adds values one by one to an accumulator."""

    @abstractmethod
    def init(self) -> Any:
        """Returns a new accumulator."""

    @abstractmethod
    def reduce(self, accumulator: Any, value: Any) -> Any:
        """Returns the accumulator with one more value."""

    @abstractmethod
    def extract_result(self, accumulator: Any) -> Any:
        """Returns the result of the accumulator."""


class MeanReducer(IReducer):
    """The mean of numbers; None if there are none.

    Example:
        >>> latency = ReducedMetric(MeanReducer())
        >>> latency.update(10); latency.update(20)
        >>> latency.get_value_and_reset()
        15.0
    """

    def init(self) -> tuple[float, int]:
        """Returns an empty sum and count."""
        return 0.0, 0

    def reduce(self, accumulator: tuple[float, int], value: float) -> tuple[float, int]:
        """Adds a number."""
        return accumulator[0] + value, accumulator[1] + 1

    def extract_result(self, accumulator: tuple[float, int]) -> float | None:
        """Returns the mean."""
        total, count = accumulator
        return total / count if count else None


class CombinedMetric:
    """A value that is combined with each update.

    Example:
        >>> class Longest(ICombiner):
        ...     def identity(self):
        ...         return 0
        ...     def combine(self, a, b):
        ...         return max(a, b)
        >>> longest = CombinedMetric(Longest())
        >>> longest.update(3); longest.update(2)
        >>> longest.get_value_and_reset(), longest.get_value_and_reset()
        (3, 0)
    """

    def __init__(self, combiner: ICombiner) -> None:
        self._combiner = combiner
        self._value = combiner.identity()

    def update(self, value: Any) -> None:
        """Combines a value with the present one."""
        self._value = self._combiner.combine(self._value, value)

    def get_value_and_reset(self) -> Any:
        """Returns the combined value, and resets it."""
        value, self._value = self._value, self._combiner.identity()
        return value

    update_metric_from_rpc = update


class ReducedMetric:
    """A value that a reducer computes from all updates."""

    def __init__(self, reducer: IReducer) -> None:
        self._reducer = reducer
        self._accumulator = reducer.init()

    def update(self, value: Any) -> None:
        """Passes a value to the reducer."""
        self._accumulator = self._reducer.reduce(self._accumulator, value)

    def get_value_and_reset(self) -> Any:
        """Returns the reducer's result, and resets it."""
        accumulator, self._accumulator = self._accumulator, self._reducer.init()
        return self._reducer.extract_result(accumulator)

    update_metric_from_rpc = update


class MultiReducedMetric:
    """Reduced metrics by name."""

    def __init__(self, reducer: IReducer) -> None:
        self._reducer = reducer
        self._parts: dict[str, ReducedMetric] = {}

    def scope(self, key: str) -> ReducedMetric:
        """Returns the metric with that name."""
        if key not in self._parts:
            self._parts[key] = ReducedMetric(self._reducer)
        return self._parts[key]

    def get_value_and_reset(self) -> dict[str, Any]:
        """Returns the values that are not None by name, and resets them."""
        found = {key: part.get_value_and_reset() for key, part in self._parts.items()}
        return {key: value for key, value in found.items() if value is not None}
