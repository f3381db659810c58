"""The functions, filters and aggregators that come with Trident."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from storm_on_spark.api.tuple import Tuple
from storm_on_spark.trident.operations.functions import (
    Aggregator,
    BaseFilter,
    CombinerAggregator,
    TridentCollector,
)

log = logging.getLogger(__name__)


class Count(CombinerAggregator):
    """The number of tuples."""

    def init(self, tup: Tuple) -> int:  # noqa: D102
        return 1

    def combine(self, first: int, second: int) -> int:  # noqa: D102
        return first + second

    def zero(self) -> int:  # noqa: D102
        return 0


class Sum(CombinerAggregator):
    """The sum of the first input field."""

    def init(self, tup: Tuple) -> Any:  # noqa: D102
        return tup[0]

    def combine(self, first: Any, second: Any) -> Any:  # noqa: D102
        return first + second

    def zero(self) -> int:  # noqa: D102
        return 0


class _Best(Aggregator):
    """The tuple that is best by one field, or by a function of it; the first of those that are equal."""

    def __init__(self, field: str | None, key: Callable[[Any], Any] | None = None) -> None:
        self._field = field
        self._key = key

    def init(self, batch_id: Any, collector: TridentCollector) -> list[Any]:
        return []

    def aggregate(self, accumulator: list[Any], tup: Tuple, collector: TridentCollector) -> None:
        value = tup if self._field is None else tup[self._field]
        value = value if self._key is None else self._key(value)
        if not accumulator or self._better(value, accumulator[0]):
            accumulator[:] = [value, tuple(tup)]

    def complete(self, accumulator: list[Any], collector: TridentCollector) -> None:
        if accumulator:
            collector.emit(accumulator[1])

    def _better(self, value: Any, than: Any) -> bool:
        raise NotImplementedError


class Min(_Best):
    """The tuple with the least value of a field.

    Args:
        field: the field; None for the whole tuple.
        key: makes what is compared of it; Storm takes a comparator.
    """

    def _better(self, value: Any, than: Any) -> bool:
        return bool(value < than)


class Max(_Best):
    """The tuple with the greatest value of a field; arguments as for `Min`."""

    def _better(self, value: Any, than: Any) -> bool:
        return bool(than < value)


class FirstN(Aggregator):
    """The first tuples of a batch, or of each group; by a field, if one is given.

    Args:
        count: how many.
        field: what tuples are sorted by; None for the order in which they come.
        reverse: whether the greatest come first.
    """

    def __init__(self, count: int, field: str | None = None, reverse: bool = False) -> None:
        self._count, self._field, self._reverse = count, field, reverse

    def init(self, batch_id: Any, collector: TridentCollector) -> list[Any]:  # noqa: D102
        return []

    def aggregate(self, accumulator: list[Any], tup: Tuple, collector: TridentCollector) -> None:  # noqa: D102
        accumulator.append((None if self._field is None else tup[self._field], tuple(tup)))
        if self._field is None:
            del accumulator[self._count :]
        else:
            accumulator.sort(key=lambda known: known[0], reverse=self._reverse)
            del accumulator[self._count :]

    def complete(self, accumulator: list[Any], collector: TridentCollector) -> None:  # noqa: D102
        for _, values in accumulator:
            collector.emit(values)


class FilterNull(BaseFilter):
    """Keeps tuples without None."""

    def is_keep(self, tup: Tuple) -> bool:  # noqa: D102
        return all(value is not None for value in tup)


class Equals(BaseFilter):
    """Keeps tuples whose values are all equal."""

    def is_keep(self, tup: Tuple) -> bool:  # noqa: D102
        return all(value == tup[0] for value in tup)


class Negate(BaseFilter):
    """Keeps what another filter doesn't."""

    def __init__(self, delegate: BaseFilter) -> None:
        self._delegate = delegate

    def prepare(self, conf: Any, context: Any) -> None:  # noqa: D102
        self._delegate.prepare(conf, context)

    def is_keep(self, tup: Tuple) -> bool:  # noqa: D102
        return not self._delegate.is_keep(tup)


class Debug(BaseFilter):
    """Keeps all tuples, and prints them.

    Args:
        name: what stands before each.
        use_logger: whether to log instead.
    """

    def __init__(self, name: str = "", use_logger: bool = False) -> None:
        self._before = f"DEBUG({name}): " if name else "DEBUG: "
        self._logs = use_logger

    def is_keep(self, tup: Tuple) -> bool:  # noqa: D102
        line = f"{self._before}{list(tup)}"
        if self._logs:
            log.info(line)
        else:
            sys.stdout.write(line + "\n")
        return True
