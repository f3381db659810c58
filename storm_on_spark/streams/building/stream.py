"""Streams, the objects with the operations that users call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import FieldsGrouping, GlobalGrouping, Grouping, ShuffleGrouping
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.building.draft import Draft
from storm_on_spark.streams.building.functions import aggregator_of, caller, checked, checked_parallelism, is_expression
from storm_on_spark.streams.graph.model import BY_KEY, Link, Operation, Port, Sink, Window
from storm_on_spark.streams.operations import values as on_values
from storm_on_spark.streams.operations.aggregating import (
    Aggregate,
    AggregateByKey,
    CountAll,
    CountByKey,
    GroupByKey,
    Reduce,
    ReduceByKey,
    StateQuery,
    UpdateStateByKey,
)
from storm_on_spark.streams.operations.aggregators import CombinerAggregator
from storm_on_spark.streams.operations.columns import (
    ColumnFilter,
    ColumnMap,
    ColumnMapToPair,
    ColumnProcessor,
    MapBatches,
)
from storm_on_spark.streams.operations.joining import CoGroupByKey, Join
from storm_on_spark.streams.operations.processor import Processor

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.compute import Expression

    from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BatchBolt
    from storm_on_spark.api.tuple import Tuple

    Bolt = BaseRichBolt | BaseBasicBolt | BatchBolt

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
S = TypeVar("S", bound="Stream[Any]")

BY_VALUE = FieldsGrouping(Fields("value"))


class Stream(Generic[T]):
    """A stream of values; Storm's `Stream`. Operations return new streams, and any stream may be used several times.

    Functions are plain Python functions, or lambdas; each task has a copy. An exception is reported with the name of
    the operation and the line where it was added. A `FailedException` fails the tuple.

    Operations on single values run in the same bolt as the operation before them. An aggregation outside of windows
    gives an updated result for each value, exactly, also after a crash. In a window it gives one result, at the
    window's end.
    """

    def __init__(self, draft: Draft, link: Link, parallelism: int, keyed: bool = False) -> None:
        self._draft = draft
        self._link = link
        self._parallelism = parallelism
        #: Whether all pairs with one key are in one task, and in the bolt to which an operation will be added.
        self._keyed = keyed

    # --- single values ------------------------------------------------------------------------------------------------

    def map(self, function: Callable[[T], R] | Expression) -> Stream[R]:
        """Returns the stream of the function's results.

        Args:
            function: a function of a value; or a `pyarrow.compute.Expression` of columns, for many values at once.
        """
        if is_expression(function):
            return Stream(self._draft, self._on_columns(ColumnMap(("value",), (function,)), False), self._parallelism)
        return self._added(on_values.Map(checked(function, 1, "map", caller())))

    def flat_map(self, function: Callable[[T], Iterable[R]]) -> Stream[R]:
        """Returns the stream of all items that the function returns or yields for each value."""
        return self._added(on_values.FlatMap(checked(function, 1, "flat_map", caller())))

    def map_to_pair(
        self, function: Callable[[T], tuple[K, V]] | Expression, value: Expression | None = None
    ) -> PairStream[K, V]:
        """Returns the stream of the pairs (key, value) that the function returns.

        Args:
            function: a function of a value; or an expression for the key, as in `map`.
            value: an expression for the value.
        """
        if is_expression(function) and is_expression(value):
            processor = ColumnMapToPair(("key", "value"), (function, value))
            return PairStream(self._draft, self._on_columns(processor, True), self._parallelism)
        return self._pairs(on_values.MapToPair(checked(function, 1, "map_to_pair", caller())))

    def flat_map_to_pair(self, function: Callable[[T], Iterable[tuple[K, V]]]) -> PairStream[K, V]:
        """Returns the stream of all pairs that the function returns or yields for each value."""
        return self._pairs(on_values.FlatMapToPair(checked(function, 1, "flat_map_to_pair", caller())))

    def filter(self: S, predicate: Callable[[T], object] | Expression) -> S:
        """Returns the stream of the values for which the function returns a true value.

        Args:
            predicate: a function of a value; or an expression, as in `map`.
        """
        if is_expression(predicate):
            before = self._link.port.node
            tuples, fields = self._draft.has_tuples(before), self._draft.fields(before)
            link = self._on_columns(ColumnFilter(fields, predicate), self._of_pairs, tuples=tuples)
            return type(self)(self._draft, link, self._parallelism)
        return self._same(on_values.Filter(checked(predicate, 1, "filter", caller())))

    def map_batches(self, function: Callable[[pyarrow.RecordBatch], Any], fields: str | Iterable[str]) -> Stream[Tuple]:
        """Returns the stream of tuples that a function makes from many tuples at once, as an Arrow record batch.

        Args:
            function: gets a record batch with the fields of a spout's tuples, or with the column `value`, or `key` and
                `value`. It returns a batch with as many rows; or a pair of a batch and, for each of its rows, the
                number of the input row it comes from.
            fields: the columns that it returns.
        """
        checked(function, 1, "map_batches", caller())
        processor = MapBatches(tuple(Fields.of(fields)), function)
        return Stream(self._draft, self._on_columns(processor, False, tuples=True), self._parallelism)

    def peek(self: S, action: Callable[[T], object]) -> S:
        """Returns the same stream, and calls the function with each value that passes."""
        return self._same(on_values.Peek(checked(action, 1, "peek", caller())))

    def for_each(self, action: Callable[[T], object]) -> None:
        """Calls the function with each value."""
        self._add(on_values.ForEach(checked(action, 1, "for_each", caller())), False)

    def print(self) -> None:
        """Prints each value where it is processed; the output of workers is in Spark's logs."""
        self._add(on_values.Print(print), False)

    def branch(self: S, *predicates: Callable[[T], object]) -> list[S]:
        """Returns a stream for each predicate, with the values for which it is the first to return a true value.

        Example:
            >>> from storm_on_spark.streams import StreamBuilder
            >>> from storm_on_spark.testing import ListSpout
            >>> numbers = StreamBuilder().new_stream(ListSpout([1, 2, 3]), lambda tup: tup[0])
            >>> even, odd = numbers.branch(lambda n: n % 2 == 0, lambda n: True)
        """
        where = caller()
        if not predicates:
            return []
        processor = on_values.Branch(tuple(checked(each, 1, "branch", where) for each in predicates))
        number = self._add(processor, self._of_pairs).port.node
        return [self._at(Link(Port(number, output))) for output in range(len(predicates))]

    def union(self: S, *others: S) -> S:
        """Returns the stream of the values of this and other streams."""
        where = caller()
        for other in others:
            self._check(other, "union", where)
            if other._of_pairs != self._of_pairs:
                raise InvalidTopologyError(f"union ({where}): one stream has pairs and the other has none")
        links = tuple(stream._link for stream in (self, *others))
        added = self._add(on_values.Union(len(links)), self._of_pairs, links=links)
        return type(self)(self._draft, added, self._parallelism)

    merge = union

    # --- tasks and windows --------------------------------------------------------------------------------------------

    def repartition(self: S, parallelism: int) -> S:
        """Returns the same stream, with `parallelism` tasks for further operations; values are distributed evenly."""
        where = f"repartition ({caller()})"
        checked_parallelism(parallelism, where)
        if parallelism == self._parallelism:
            return self
        return self._moved(ShuffleGrouping(), parallelism)

    def window(self: S, window: Window) -> S:
        """Returns the stream of the values in each window.

        Args:
            window: from `SlidingWindows.of` or `TumblingWindows.of`.
        """
        where = caller()
        if not isinstance(window, Window):
            raise InvalidTopologyError(
                f"window ({where}) takes SlidingWindows.of(...) or TumblingWindows.of(...), not {kind_of(window)}"
            )
        if self._link.window is not None:
            raise InvalidTopologyError(f"window ({where}): the stream has a window already, and nothing uses it")
        return type(self)(self._draft, replace(self._link, window=window), self._parallelism)

    # --- aggregations -------------------------------------------------------------------------------------------------

    @overload
    def aggregate(self, aggregator: CombinerAggregator, /) -> Stream[Any]: ...

    @overload
    def aggregate(
        self, initial: R, accumulate: Callable[[R, T], R], combine: Callable[[R, R], R] | None = None, /
    ) -> Stream[R]: ...

    def aggregate(self, initial: Any, accumulate: Any = None, combine: Any = None, /) -> Stream[Any]:
        """Returns the stream of the aggregates of all values, of all tasks.

        Args:
            initial: a `CombinerAggregator`; or the initial accumulator, as in `CombinerAggregator.of`.
            accumulate: called with accumulator and value.
            combine: called with two accumulators. With it, a sliding window keeps accumulators instead of values.
        """
        return self._total(Aggregate(aggregator_of(initial, accumulate, combine, "aggregate")))

    def count(self) -> Stream[int]:
        """Returns the stream of the number of all values."""
        return self._total(CountAll())

    def reduce(self, reducer: Callable[[T, T], T]) -> Stream[T]:
        """Returns the stream of all values reduced to one by a function of two."""
        return self._total(Reduce(checked(reducer, 2, "reduce", caller())))

    def state_query(self, state: StreamState[T, V]) -> PairStream[T, V]:
        """Returns the stream of pairs of each value and its entry in `state`, or None if it has none.

        The query is executed in the task that has the value's state, after the values that this task has already
        processed.
        """
        where = caller()
        if not isinstance(state, StreamState):
            raise InvalidTopologyError(
                f"state_query ({where}) takes what update_state_by_key returns, not {kind_of(state)}"
            )
        self._check(state.stream, "state_query", where)
        if self._of_pairs:
            raise InvalidTopologyError(f"state_query ({where}) takes a stream of keys; make one of the pairs with map")
        link = self._without_window()._link
        if state.parallelism > 1 or self._parallelism > 1:
            link = replace(link, grouping=BY_VALUE if state.parallelism > 1 else GlobalGrouping())
        added = self._add(StateQuery(state.number), True, links=(link,), parallelism=state.parallelism)
        return PairStream(self._draft, added, state.parallelism, keyed=True)

    # --- bolts --------------------------------------------------------------------------------------------------------

    def to(self, bolt: Bolt, parallelism: int = 1, *, name: str | None = None) -> None:
        """Sends the values to a bolt, as tuples with the field `value`, or `key` and `value`.

        Args:
            bolt: any bolt.
            parallelism: its number of tasks.
            name: its component id, instead of `bolt1` and so on.
        """
        self._sink(bolt, parallelism, name, "to")

    def through(self, bolt: Bolt, parallelism: int = 1, *, name: str | None = None) -> Stream[Tuple]:
        """Sends the values to a bolt, and returns the stream of the tuples that it emits on its stream `default`."""
        return Stream(self._draft, self._sink(bolt, parallelism, name, "through"), parallelism)

    # --- inner --------------------------------------------------------------------------------------------------------

    @property
    def _of_pairs(self) -> bool:
        return isinstance(self, PairStream)

    def _sink(self, bolt: Bolt, parallelism: int, name: str | None, what: str) -> Link:
        where = caller()
        checked_parallelism(parallelism, f"{what} ({where})")
        if self._link.window is not None:
            raise InvalidTopologyError(f"{what} ({where}): an operation has to come between a window and a bolt")
        return self._draft.add(Sink(self._draft.next_id, bolt, (self._link,), parallelism, where, name))

    def _add(
        self,
        processor: Processor,
        pairs: bool,
        links: tuple[Link, ...] | None = None,
        parallelism: int | None = None,
    ) -> Link:
        given = (self._link,) if links is None else links
        tasks = self._parallelism if parallelism is None else parallelism
        return self._draft.add(Operation(self._draft.next_id, processor, given, tasks, pairs, caller()))

    def _added(self, processor: Processor) -> Stream[Any]:
        return Stream(self._draft, self._add(processor, False), self._parallelism)

    def _pairs(self, processor: Processor, keyed: bool = False) -> PairStream[Any, Any]:
        return PairStream(self._draft, self._add(processor, True), self._parallelism, keyed)

    def _on_columns(self, processor: ColumnProcessor, pairs: bool, *, tuples: bool = False) -> Link:
        # Record batches have no windows, so their results are gathered in a window.
        link, window = replace(self._link, window=None), self._link.window
        number = self._draft.next_id
        operation = Operation(number, processor, (link,), self._parallelism, pairs, caller(), tuples)
        return replace(self._draft.add(operation), window=window)

    def _same(self: S, processor: Processor) -> S:
        return self._at(self._add(processor, self._of_pairs))

    def _at(self: S, link: Link) -> S:
        return type(self)(self._draft, link, self._parallelism, self._keyed)

    def _without_window(self: S) -> S:
        """Returns a stream gathered by its window, if any, because the next operation keeps more than a window."""
        return self if self._link.window is None else self._same(on_values.Map(_same))

    def _moved(self: S, grouping: Grouping, parallelism: int) -> S:
        return type(self)(self._draft, replace(self._link, grouping=grouping), parallelism, grouping == BY_KEY)

    def _total(self, processor: Processor) -> Stream[Any]:
        """Adds an operation on all values, which one task must see."""
        whole = self if self._parallelism == 1 else self._moved(GlobalGrouping(), 1)
        return whole._added(processor)

    def _check(self, other: Any, what: str, where: str) -> None:
        if not isinstance(other, Stream):
            raise InvalidTopologyError(f"{what} ({where}) takes a stream, not {kind_of(other)}")
        if other._draft is not self._draft:
            raise InvalidTopologyError(f"{what} ({where}): the other stream is of another StreamBuilder")

    def _repr_html_(self) -> str:
        return self._draft.picture()


class PairStream(Stream[tuple[K, V]]):
    """A stream of pairs (key, value); Storm's `PairStream`."""

    def map_values(self, function: Callable[[V], R]) -> PairStream[K, R]:
        """Returns the stream with the function's result instead of each value; keys stay."""
        return self._pairs(on_values.MapValues(checked(function, 1, "map_values", caller())), self._keyed)

    def flat_map_values(self, function: Callable[[V], Iterable[R]]) -> PairStream[K, R]:
        """Returns the stream with a pair for each item that the function returns or yields for each value."""
        return self._pairs(on_values.FlatMapValues(checked(function, 1, "flat_map_values", caller())), self._keyed)

    @overload
    def aggregate_by_key(self, aggregator: CombinerAggregator, /) -> PairStream[K, Any]: ...

    @overload
    def aggregate_by_key(
        self, initial: R, accumulate: Callable[[R, V], R], combine: Callable[[R, R], R] | None = None, /
    ) -> PairStream[K, R]: ...

    def aggregate_by_key(self, initial: Any, accumulate: Any = None, combine: Any = None, /) -> PairStream[K, Any]:
        """Returns the stream of the aggregate of each key's values; arguments as for `aggregate`."""
        return self._by_key(AggregateByKey(aggregator_of(initial, accumulate, combine, "aggregate_by_key")))

    def count_by_key(self) -> PairStream[K, int]:
        """Returns the stream of the number of each key's values."""
        return self._by_key(CountByKey())

    def reduce_by_key(self, reducer: Callable[[V, V], V]) -> PairStream[K, V]:
        """Returns the stream of each key's values reduced to one by a function of two."""
        return self._by_key(ReduceByKey(checked(reducer, 2, "reduce_by_key", caller())))

    def group_by_key(self) -> PairStream[K, list[V]]:
        """Returns the stream of the list of each key's values. Outside of windows the lists grow for ever."""
        return self._by_key(GroupByKey())

    def group_by_key_and_window(self, window: Window) -> PairStream[K, list[V]]:
        """Returns the stream of the list of each key's values in each window."""
        return self.window(window).group_by_key()

    def reduce_by_key_and_window(self, reducer: Callable[[V, V], V], window: Window) -> PairStream[K, V]:
        """Returns the stream of each key's values in each window, reduced to one."""
        return self.window(window).reduce_by_key(reducer)

    def join(self, other: PairStream[K, W], joiner: Callable[[V, W], R] | None = None) -> PairStream[K, Any]:
        """Returns the stream of joined values with the same key in both streams.

        In a window each value is joined with all values of the other stream with its key. Outside of windows it is
        joined with those that came before it; both streams are then kept for ever.

        Args:
            other: the other stream. If one of the two has a window, it applies to both.
            joiner: called with the values of both; by default the pair of them.
        """
        return self._joined(other, joiner, "join", False, False)

    def left_outer_join(
        self, other: PairStream[K, W], joiner: Callable[[V, Any], R] | None = None
    ) -> PairStream[K, Any]:
        """Returns the stream of joined values; a value of this stream without a partner is joined with None."""
        return self._joined(other, joiner, "left_outer_join", True, False)

    def right_outer_join(
        self, other: PairStream[K, W], joiner: Callable[[Any, W], R] | None = None
    ) -> PairStream[K, Any]:
        """Returns the stream of joined values; a value of the other stream without a partner is joined with None."""
        return self._joined(other, joiner, "right_outer_join", False, True)

    def full_outer_join(
        self, other: PairStream[K, W], joiner: Callable[[Any, Any], R] | None = None
    ) -> PairStream[K, Any]:
        """Returns the stream of joined values; a value of either stream without a partner is joined with None."""
        return self._joined(other, joiner, "full_outer_join", True, True)

    def co_group_by_key(self, other: PairStream[K, W]) -> PairStream[K, tuple[list[V], list[W]]]:
        """Returns the stream of the lists of each key's values in both streams."""
        return self._with(other, CoGroupByKey(), "co_group_by_key")

    def update_state_by_key(self, initial: R, update: Callable[[R, V], R] | None = None) -> StreamState[K, R]:
        """Keeps a state for each key.

        Args:
            initial: the state before the first value; as in `CombinerAggregator.of`. Or an object with methods `init`
                and `apply`, as a `CombinerAggregator` has; Storm's `StateUpdater`.
            update: called with state and value; returns the new state.

        Returns:
            The states: `state_query` reads them, and `to_pair_stream` is the stream of their changes.
        """
        processor = UpdateStateByKey(aggregator_of(initial, update, None, "update_state_by_key"))
        source = self._without_window()
        link = replace(source._link, grouping=BY_KEY if self._parallelism > 1 else ShuffleGrouping())
        added = self._add(processor, True, links=(link,))
        return StreamState(PairStream(self._draft, added, self._parallelism, keyed=True), added.port.node)

    def _partitioned(self, parallelism: int) -> Link:
        """Returns the link by which all pairs with one key reach one of `parallelism` tasks."""
        if parallelism == self._parallelism and (parallelism == 1 or self._keyed):
            return self._link
        return replace(self._link, grouping=BY_KEY if parallelism > 1 else GlobalGrouping())

    def _by_key(self, processor: Processor) -> PairStream[K, Any]:
        added = self._add(processor, True, links=(self._partitioned(self._parallelism),))
        return PairStream(self._draft, added, self._parallelism, keyed=True)

    def _joined(
        self, other: Any, joiner: Callable[[Any, Any], Any] | None, name: str, left: bool, right: bool
    ) -> PairStream[K, Any]:
        function = _pair if joiner is None else checked(joiner, 2, name, caller())
        return self._with(other, Join(function, left, right), name)

    def _with(self, other: Any, processor: Processor, name: str) -> PairStream[K, Any]:
        where = caller()
        self._check(other, name, where)
        if not isinstance(other, PairStream):
            raise InvalidTopologyError(f"{name} ({where}) takes a stream of pairs; make one with map_to_pair")
        links = (self._partitioned(self._parallelism), other._partitioned(self._parallelism))
        added = self._add(processor, True, links=links)
        return PairStream(self._draft, added, self._parallelism, keyed=True)


class StreamState(Generic[K, V]):
    """The states that `update_state_by_key` keeps; Storm's `StreamState`."""

    def __init__(self, stream: PairStream[K, V], number: int) -> None:
        self.stream = stream
        #: The operation that keeps the states.
        self.number = number

    @property
    def parallelism(self) -> int:
        """The number of tasks that keep the states."""
        return self.stream._parallelism

    def to_pair_stream(self) -> PairStream[K, V]:
        """Returns the stream of keys and their new states, one pair for each change."""
        return self.stream


def _same(value: T) -> T:
    return value


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second
