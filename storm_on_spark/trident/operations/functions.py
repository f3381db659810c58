"""What users write: functions, filters and aggregators, with Storm's names.

A plain Python function will do for most of them. It gets the tuple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.values import Values
from storm_on_spark.api.tuple import Delivery, Tuple

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext

Row = tuple[Any, ...]
"""The values of a tuple between two operations."""


class TridentCollector(ABC):
    """Takes what a function or an aggregator emits."""

    @abstractmethod
    def emit(self, values: Sequence[Any]) -> None:
        """Emits the values of the operation's own fields; those that the tuple had already come before them."""

    @abstractmethod
    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status; the batch continues."""


class _Operation(ABC):  # noqa: B024  # its subclasses have the abstract methods
    """What functions, filters and aggregators have in common."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: B027
        """Called once in each task, before anything else."""

    def cleanup(self) -> None:  # noqa: B027
        """Not called on Spark, like `cleanup` of bolts: nobody knows which worker will not be used again."""


class BaseFunction(_Operation):
    """Storm's `Function`: emits any number of rows for a tuple.

    Example:
        >>> class Split(BaseFunction):
        ...     def execute(self, tup, collector):
        ...         for word in tup["sentence"].split():
        ...             collector.emit([word])
    """

    @abstractmethod
    def execute(self, tup: Tuple, collector: TridentCollector) -> None:
        """Emits the values of the new fields for a tuple, which has the input fields."""


class BaseFilter(_Operation):
    """Storm's `Filter`: says which tuples stay."""

    @abstractmethod
    def is_keep(self, tup: Tuple) -> bool:
        """Returns whether a tuple stays."""


class Aggregator(_Operation):
    """Storm's `Aggregator`: turns the tuples of a batch into any number of rows.

    Example:
        >>> class Longest(Aggregator):
        ...     def init(self, batch_id, collector):
        ...         return [""]
        ...     def aggregate(self, accumulator, tup, collector):
        ...         accumulator[0] = max(accumulator[0], tup[0], key=len)
        ...     def complete(self, accumulator, collector):
        ...         collector.emit(accumulator)
    """

    @abstractmethod
    def init(self, batch_id: Any, collector: TridentCollector) -> Any:
        """Returns the accumulator of a batch, or of one of its groups: an object that `aggregate` changes.

        It must be picklable, as a checkpoint may come in the middle of a batch.
        """

    @abstractmethod
    def aggregate(self, accumulator: Any, tup: Tuple, collector: TridentCollector) -> None:
        """Adds a tuple."""

    @abstractmethod
    def complete(self, accumulator: Any, collector: TridentCollector) -> None:
        """Called at the end of the batch; emits the result."""


BaseAggregator = Aggregator
"""Storm's name, for ported code."""


class ReducerAggregator(ABC):
    """Storm's `ReducerAggregator`: folds tuples into one value."""

    @abstractmethod
    def init(self) -> Any:
        """Returns the value before the first tuple."""

    @abstractmethod
    def reduce(self, current: Any, tup: Tuple) -> Any:
        """Returns the value after a tuple."""


class CombinerAggregator(ABC):
    """Storm's `CombinerAggregator`: values that can be combined in any order, so each task combines its own first.

    Example:
        >>> class Longest(CombinerAggregator):
        ...     def init(self, tup):
        ...         return tup[0]
        ...     def combine(self, first, second):
        ...         return max(first, second, key=len)
        ...     def zero(self):
        ...         return ""
    """

    @abstractmethod
    def init(self, tup: Tuple) -> Any:
        """Returns the value of one tuple."""

    @abstractmethod
    def combine(self, first: Any, second: Any) -> Any:
        """Returns the value of two values; the order of calls doesn't matter."""

    @abstractmethod
    def zero(self) -> Any:
        """Returns the value of no tuples: combined with a value it gives that value."""


class MultiReducer(ABC):
    """Storm's `MultiReducer`: turns the tuples of several streams, or of one group of each, into rows."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: B027
        """Called once in each task, before anything else."""

    @abstractmethod
    def init(self, collector: TridentCollector) -> Any:
        """Returns the accumulator of a batch, or of one of its groups."""

    @abstractmethod
    def execute(self, accumulator: Any, stream: int, tup: Tuple, collector: TridentCollector) -> None:
        """Adds a tuple of a stream, by the stream's number."""

    @abstractmethod
    def complete(self, accumulator: Any, collector: TridentCollector) -> None:
        """Called at the end of the batch."""


class View:
    """Makes the tuples that users see of rows.

    Example:
        >>> View(("word", "count"), (1,)).of(("storm", 3))["count"]
        3
    """

    def __init__(self, fields: Sequence[str], positions: Sequence[int] | None = None) -> None:
        chosen = tuple(range(len(fields)) if positions is None else positions)
        self._chosen = None if chosen == tuple(range(len(fields))) else chosen
        self._delivery = Delivery("", "", 0, Fields([fields[position] for position in chosen]))

    def of(self, row: Row) -> Tuple:
        """Returns the tuple of a row, with the chosen fields."""
        chosen = self._chosen
        return Tuple.of(row if chosen is None else [row[position] for position in chosen], self._delivery)


class Emitter(TridentCollector):
    """A collector that hands rows on, after values that were there before."""

    def __init__(self, forward: Callable[[Row], None], width: int, report: Callable[[BaseException], None]) -> None:
        self._forward = forward
        self._width = width
        self._report = report
        #: What comes before the emitted values.
        self.before: Row = ()

    def emit(self, values: Sequence[Any]) -> None:  # noqa: D102
        if len(values) != self._width:
            raise ValueError(f"{len(values)} values were emitted for {self._width} fields: {values!r:.100}")
        self._forward((*self.before, *values))

    def report_error(self, error: BaseException) -> None:  # noqa: D102
        self._report(error)


def row_of(result: Any, width: int) -> Row:
    """Returns the row that a plain function returned.

    With one field, any result is its value; `Values` are a row in any case.

    Raises:
        ValueError: there are more or fewer values than fields.
    """
    if width == 1 and not isinstance(result, Values):
        return (result,)
    if not isinstance(result, (list, tuple)) or len(result) != width:
        raise ValueError(f"a function returned {result!r:.100} for {width} fields; return a tuple with a value of each")
    return tuple(result)


def rows_of(results: Iterable[Any] | None, width: int) -> Iterable[Row]:
    """Returns the rows that a plain function returned; None stands for none."""
    return () if results is None else (row_of(result, width) for result in results)
