"""Streams of batches: what users call operations on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from storm_on_spark.api.custom_grouping import CustomGrouping, CustomStreamGrouping
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.building.functions import caller, checked, checked_parallelism
from storm_on_spark.streams.building.windows import SlidingWindows, TumblingWindows
from storm_on_spark.streams.graph.model import Link, Window
from storm_on_spark.streams.operations.processor import Processor
from storm_on_spark.trident.building.aggregating import Given, by_time, checked_kept, given
from storm_on_spark.trident.building.draft import BatchDraft, Names, names_of, positions, with_new
from storm_on_spark.trident.graph.groupings import BATCH_GLOBAL, IDENTITY
from storm_on_spark.trident.operations import values as on_rows
from storm_on_spark.trident.operations.aggregating import Aggregate
from storm_on_spark.trident.operations.builtin import Max, Min
from storm_on_spark.trident.operations.functions import (
    Aggregator,
    BaseFilter,
    BaseFunction,
    CombinerAggregator,
    ReducerAggregator,
)
from storm_on_spark.trident.operations.persisting import AggregateMap, AggregateValue, Persist, Query
from storm_on_spark.trident.operations.windows import Window as OverBatches
from storm_on_spark.windowing.definition import Extent

Aggregators: TypeAlias = Aggregator | CombinerAggregator | ReducerAggregator


class Stream:
    """A stream of tuples in batches; Storm's Trident `Stream`. Operations return new streams.

    A function is a plain Python function of the tuple, or an object of one of Storm's classes. Operations run in one
    bolt until tuples have to change tasks.
    """

    def __init__(self, draft: BatchDraft, link: Link, fields: tuple[str, ...], label: str = "") -> None:
        self._draft = draft
        self._link = link
        self._fields = fields
        self._label = label

    @property
    def output_fields(self) -> Fields:
        """The fields of its tuples."""
        return Fields(self._fields)

    def name(self, name: str) -> Stream:
        """Names the operations that are added from here on: the ids of their bolts contain it."""
        return Stream(self._draft, self._link, self._fields, name)

    def to_stream(self) -> Stream:
        """Returns the stream itself, for code that is given a stream or a grouped one."""
        return self

    def parallelism_hint(self, tasks: int) -> Stream:
        """Asks for a number of tasks, for all operations back to where tuples changed tasks last."""
        checked_parallelism(tasks, f"parallelism_hint ({caller()})")
        self._draft.hints[self._link.port.node] = tasks
        return self

    def apply_assembly(self, assembly: Callable[[Stream], Stream]) -> Stream:
        """Returns what a function makes of the stream: a way to use a chain of operations again."""
        return assembly(self)

    # --- single tuples ------------------------------------------------------------------------------------------------

    def each(self, inputs: Any, function: Any = None, fields: Names | None = None) -> Stream:
        """Returns the stream with further fields, or of fewer tuples.

        Args:
            inputs: the fields that the function gets; may be left out.
            function: a `BaseFunction`; a `BaseFilter`; or a plain function of the tuple. That returns any number of
                results, such as a list or a generator; without `fields` it says whether the tuple stays.
            fields: the new fields. With one of them, a result is its value, and otherwise a tuple of all values.
        """
        if callable(inputs) or isinstance(inputs, (BaseFunction, BaseFilter)):
            inputs, function, fields = self._fields, inputs, function
        chosen = positions(self._fields, names_of(inputs), "each")
        new = names_of(fields)
        if isinstance(function, BaseFilter) or (not isinstance(function, BaseFunction) and not new):
            return self._added(on_rows.Filter(_callable(function, "each"), self._fields, chosen), self._fields)
        made = with_new(self._fields, new, "each")
        return self._added(on_rows.Each(_callable(function, "each"), self._fields, chosen, len(new)), made)

    def filter(self, inputs: Any, condition: Any = None) -> Stream:
        """Returns the stream of the tuples for which a function returns something true.

        Args:
            inputs: the fields that the function gets; may be left out.
            condition: a `BaseFilter`, or a plain function of the tuple.
        """
        if condition is None:
            inputs, condition = self._fields, inputs
        chosen = positions(self._fields, names_of(inputs), "filter")
        return self._added(on_rows.Filter(_callable(condition, "filter"), self._fields, chosen), self._fields)

    def map(self, function: Callable[[Any], Any], fields: Names | None = None) -> Stream:
        """Returns the stream of the function's results: one for each tuple.

        Args:
            function: of the tuple.
            fields: those of the results; by default those of the stream.
        """
        names = self._fields if fields is None else names_of(fields)
        every = tuple(range(len(self._fields)))
        return self._added(on_rows.Map(_callable(function, "map"), self._fields, every, len(names)), names)

    def flat_map(self, function: Callable[[Any], Any], fields: Names | None = None) -> Stream:
        """Returns the stream of the function's results: any number for each tuple; see `map`."""
        names = self._fields if fields is None else names_of(fields)
        every = tuple(range(len(self._fields)))
        return self._added(on_rows.FlatMap(_callable(function, "flat_map"), self._fields, every, len(names)), names)

    def peek(self, function: Callable[[Any], Any]) -> Stream:
        """Returns the same stream, and calls a function with each tuple on its way."""
        every = tuple(range(len(self._fields)))
        return self._added(on_rows.Peek(_callable(function, "peek"), self._fields, every), self._fields)

    def project(self, keep: Names) -> Stream:
        """Returns the stream with these fields only."""
        names = names_of(keep)
        return self._added(on_rows.Project(positions(self._fields, names, "project")), names)

    # --- which task ---------------------------------------------------------------------------------------------------

    def shuffle(self) -> Stream:
        """Spreads tuples evenly over the tasks of what comes next."""
        return self._moved(ShuffleGrouping())

    def local_or_shuffle(self) -> Stream:
        """Prefers tasks in the same process."""
        return self._moved(LocalOrShuffleGrouping())

    def broadcast(self) -> Stream:
        """Sends every tuple to all tasks of what comes next."""
        return self._moved(AllGrouping())

    def partition_by(self, fields: Names) -> Stream:
        """Sends tuples with equal values of these fields to one task."""
        names = names_of(fields)
        positions(self._fields, names, "partition_by")
        return self._moved(FieldsGrouping(Fields(names)))

    def global_(self) -> Stream:
        """Sends all tuples to one task."""
        return self._moved(GlobalGrouping())

    def batch_global(self) -> Stream:
        """Sends all tuples of a batch to one task, and batches to all tasks in turn."""
        return self._moved(BATCH_GLOBAL)

    def identity_partition(self) -> Stream:
        """Sends the tuples of a task to the task with the same number; both bolts need equally many."""
        return self._moved(IDENTITY)

    def partition(self, grouping: CustomStreamGrouping | Grouping) -> Stream:
        """Sends tuples where a grouping of the user's says. Its values begin with the batch's id."""
        return self._moved(grouping if isinstance(grouping, Grouping) else CustomGrouping(grouping))

    # --- aggregations -------------------------------------------------------------------------------------------------

    def partition_aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> Stream:
        """Returns the stream of the aggregates of each batch in each task.

        Args:
            inputs: the fields that the aggregator gets; may be left out.
            aggregator: an `Aggregator`, `ReducerAggregator` or `CombinerAggregator`.
            fields: those of the results.
        """
        return self._aggregated((), [given(inputs, aggregator, fields, "partition_aggregate")])

    def aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> Stream:
        """Returns the stream of the aggregates of each batch, of all tasks; arguments as for `partition_aggregate`.

        A `CombinerAggregator` combines in each task first, and then what tasks have combined.
        """
        return self._totals([given(inputs, aggregator, fields, "aggregate")])

    def chained_agg(self) -> ChainedAggregation:
        """Begins several aggregations of the same tuples; end them with `chain_end`."""
        return ChainedAggregation(self, ())

    def group_by(self, fields: Names) -> GroupedStream:
        """Returns the stream in groups with equal values of these fields."""
        names = names_of(fields)
        positions(self._fields, names, "group_by")
        return GroupedStream(self, names)

    def min_by(self, field: str, key: Callable[[Any], Any] | None = None) -> Stream:
        """Returns the stream of the tuple with the least value of a field, of each batch in each task.

        Args:
            field: the field.
            key: makes what is compared of a value.
        """
        return self.partition_aggregate(self._fields, Min(_known(self, field, "min_by"), key), self._fields)

    def max_by(self, field: str, key: Callable[[Any], Any] | None = None) -> Stream:
        """Returns the stream of the tuple with the greatest value of a field; see `min_by`."""
        return self.partition_aggregate(self._fields, Max(_known(self, field, "max_by"), key), self._fields)

    def min(self, key: Callable[[Any], Any]) -> Stream:
        """Returns the stream of the tuple for which `key` gives the least, of each batch in each task."""
        return self.partition_aggregate(self._fields, Min(None, key), self._fields)

    def max(self, key: Callable[[Any], Any]) -> Stream:
        """Returns the stream of the tuple for which `key` gives the greatest, of each batch in each task."""
        return self.partition_aggregate(self._fields, Max(None, key), self._fields)

    # --- windows ------------------------------------------------------------------------------------------------------

    def tumbling_window(self, length: Extent, inputs: Any, aggregator: Any, fields: Names | None = None) -> Stream:
        """Returns the stream of the aggregates of windows of which one begins where the one before has ended.

        Args:
            length: a `Count` of tuples or a `Duration`; of each task.
            inputs: the fields that the aggregator gets; may be left out.
            aggregator: an `Aggregator`, `ReducerAggregator` or `CombinerAggregator`.
            fields: those of the results.
        """
        return self._windowed(TumblingWindows.of(length), given(inputs, aggregator, fields, "tumbling_window"))

    def sliding_window(
        self, length: Extent, slide: Extent, inputs: Any, aggregator: Any, fields: Names | None = None
    ) -> Stream:
        """Returns the stream of the aggregates of the last tuples, after each `slide`; see `tumbling_window`."""
        return self._windowed(SlidingWindows.of(length, slide), given(inputs, aggregator, fields, "sliding_window"))

    def window(self, window: Window, inputs: Any, aggregator: Any, fields: Names | None = None) -> Stream:
        """Returns the stream of the aggregates of windows, from `SlidingWindows.of` or `TumblingWindows.of`."""
        return self._windowed(window, given(inputs, aggregator, fields, "window"))

    # --- state --------------------------------------------------------------------------------------------------------

    def partition_persist(
        self, factory: Any, inputs: Any, updater: Any = None, fields: Names | None = None
    ) -> TridentState:
        """Writes the tuples of each batch to a state, in the order of batches.

        Args:
            factory: a `StateFactory`.
            inputs: the fields that the updater gets; may be left out.
            updater: a `StateUpdater`.
            fields: those that the updater emits, for `new_values_stream`.
        """
        if hasattr(inputs, "update_state"):
            inputs, updater, fields = self._fields, inputs, updater
        if not hasattr(updater, "update_state"):
            raise InvalidTopologyError(f"partition_persist ({caller()}) takes a StateUpdater, not {kind_of(updater)}")
        chosen = positions(self._fields, names_of(inputs), "partition_persist")
        return self._persisted(factory, updater, chosen, names_of(fields))

    def persistent_aggregate(
        self, factory: Any, inputs: Any, aggregator: Any = None, fields: Names | None = None
    ) -> TridentState:
        """Keeps the aggregate of all tuples of all batches in a state.

        Args:
            factory: makes a `Snapshottable`.
            inputs: the fields that the aggregator gets; may be left out.
            aggregator: a `CombinerAggregator` or `ReducerAggregator`.
            fields: the field of the aggregate.
        """
        found = checked_kept(given(inputs, aggregator, fields, "persistent_aggregate"))
        stream = self._partial((), found)
        inputs = found.outputs if found.combines else found.inputs_of(stream._fields)
        chosen = positions(stream._fields, inputs, "persistent_aggregate")
        updater = AggregateValue(found.aggregator)
        return stream.global_()._persisted(factory, updater, chosen, found.outputs)

    def state_query(self, state: TridentState, inputs: Any, function: Any, fields: Names | None = None) -> Stream:
        """Returns the stream with further fields, from what a state answers.

        The state answers in its own tasks: repartition the stream so that each tuple gets to the right one.

        Args:
            state: what is asked.
            inputs: the fields that the function gets; may be left out.
            function: a `QueryFunction`.
            fields: the new fields.
        """
        if hasattr(inputs, "batch_retrieve"):
            inputs, function, fields = self._fields, inputs, function
        if not hasattr(function, "batch_retrieve"):
            raise InvalidTopologyError(f"state_query ({caller()}) takes a QueryFunction, not {kind_of(function)}")
        new = names_of(fields)
        if not isinstance(state, TridentState):
            raise InvalidTopologyError(f"state_query ({caller()}) takes a TridentState, not {kind_of(state)}")
        chosen = positions(self._fields, names_of(inputs), "state_query")
        made = with_new(self._fields, new, "state_query")
        number = self._draft.next_id
        owner = state.used_by(number)
        return self._added(Query(state.factory, owner, function, self._fields, chosen, len(new)), made)

    # --- inner --------------------------------------------------------------------------------------------------------

    def _added(self, processor: Processor, fields: tuple[str, ...]) -> Stream:
        link = self._draft.operation(processor, [self._link], fields, self._label)
        return Stream(self._draft, link, fields, self._label)

    def _moved(self, grouping: Grouping) -> Stream:
        return Stream(self._draft, replace(self._link, grouping=grouping), self._fields, self._label)

    def _windowed(self, window: Window, found: Given) -> Stream:
        timed = by_time(window, found.what)
        column = found.column(self._fields, False)
        processor = OverBatches(self._fields, column, window.length.value, window.slide.value, timed)
        return self._added(processor, found.outputs)

    def _persisted(self, factory: Any, updater: Any, chosen: tuple[int, ...], fields: tuple[str, ...]) -> TridentState:
        number = self._draft.next_id
        made = self._added(Persist(factory, number, updater, self._fields, chosen, len(fields)), fields)
        return TridentState(self._draft, factory, made)

    def _aggregated(
        self, keys: tuple[str, ...], aggregations: list[Given], partial: bool = False, once: bool = False
    ) -> Stream:
        """Adds an aggregation in each task."""
        columns = tuple(found.column(self._fields, partial) for found in aggregations)
        outputs = tuple(name for found in aggregations for name in found.outputs)
        fields = with_new(keys, outputs, "aggregate")
        return self._added(Aggregate(self._fields, positions(self._fields, keys, "group_by"), columns, once), fields)

    def _partial(self, keys: tuple[str, ...], found: Given) -> Stream:
        """Returns the stream combined in each task, if that can be done."""
        return self._aggregated(keys, [found]) if found.combines else self

    def _totals(self, aggregations: list[Given]) -> Stream:
        """Adds an aggregation of each batch, of all tasks."""
        if all(found.combines for found in aggregations):
            return self._aggregated((), aggregations).batch_global()._aggregated((), aggregations, True, True)
        return self.batch_global()._aggregated((), aggregations, once=True)


class GroupedStream:
    """A stream in groups; Storm's `GroupedStream`."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys

    @property
    def output_fields(self) -> Fields:
        """The fields of its tuples."""
        return self._stream.output_fields

    def name(self, name: str) -> GroupedStream:
        """Names the operations that are added from here on."""
        return GroupedStream(self._stream.name(name), self._keys)

    @property
    def group_fields(self) -> Fields:
        """The fields whose values a group has in common."""
        return Fields(self._keys)

    def each(self, inputs: Any, function: Any = None, fields: Names | None = None) -> GroupedStream:
        """Returns the stream in the same groups, with further fields or of fewer tuples; see `Stream.each`."""
        return GroupedStream(self._stream.each(inputs, function, fields), self._keys)

    def to_stream(self) -> Stream:
        """Returns the stream without its groups."""
        return self._stream

    def aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> Stream:
        """Returns the stream of the aggregates of each group of each batch: the group's fields, then the results'."""
        return self._totals([given(inputs, aggregator, fields, "aggregate")])

    def partition_aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> GroupedStream:
        """Returns the aggregates of each group of each batch, in each task; as in Storm, they are still grouped."""
        found = given(inputs, aggregator, fields, "partition_aggregate")
        return GroupedStream(self._stream._aggregated(self._keys, [found]), self._keys)

    def chained_agg(self) -> ChainedAggregation:
        """Begins several aggregations of the same groups; end them with `chain_end`."""
        return ChainedAggregation(self._stream, self._keys)

    def persistent_aggregate(
        self, factory: Any, inputs: Any, aggregator: Any = None, fields: Names | None = None
    ) -> TridentState:
        """Keeps the aggregate of each group, of all batches, in a state.

        Args:
            factory: makes a `MapState`.
            inputs: the fields that the aggregator gets; may be left out.
            aggregator: a `CombinerAggregator` or `ReducerAggregator`.
            fields: the field of the aggregate.
        """
        found = checked_kept(given(inputs, aggregator, fields, "persistent_aggregate"))
        stream = self._stream._partial(self._keys, found)
        inputs = found.outputs if found.combines else found.inputs_of(stream._fields)
        taken = (*self._keys, *(name for name in inputs if name not in self._keys))
        chosen = positions(stream._fields, taken, "persistent_aggregate")
        updater = AggregateMap(
            found.aggregator, len(self._keys), taken, positions(taken, inputs, "persistent_aggregate")
        )
        made = with_new(self._keys, found.outputs, "persistent_aggregate")
        return stream.partition_by(self._keys)._persisted(factory, updater, chosen, made)

    def state_query(self, state: TridentState, inputs: Any, function: Any, fields: Names | None = None) -> Stream:
        """Returns the stream with further fields, from a state's answers for each group; see `Stream.state_query`."""
        return self._stream.partition_by(self._keys).state_query(state, inputs, function, fields)

    def _totals(self, aggregations: list[Given]) -> Stream:
        stream, keys = self._stream, self._keys
        if all(found.combines for found in aggregations):
            return stream._aggregated(keys, aggregations).partition_by(keys)._aggregated(keys, aggregations, True)
        return stream.partition_by(keys)._aggregated(keys, aggregations)


class ChainedAggregation:
    """Several aggregations of the same tuples; Storm's `ChainedAggregatorDeclarer`."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys
        self._aggregations: list[Given] = []
        self._total = False

    def aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> ChainedAggregation:
        """Adds an aggregation of all tasks."""
        return self._with(given(inputs, aggregator, fields, "aggregate"), True)

    def partition_aggregate(self, inputs: Any, aggregator: Any, fields: Names | None = None) -> ChainedAggregation:
        """Adds an aggregation in each task."""
        return self._with(given(inputs, aggregator, fields, "partition_aggregate"), False)

    def chain_end(self) -> Stream:
        """Returns the stream of the results: each of one aggregation with each of the others."""
        if not self._aggregations:
            raise InvalidTopologyError(f"chain_end ({caller()}): the chain has no aggregation")
        if not self._total:
            return self._stream._aggregated(self._keys, self._aggregations)
        if self._keys:
            return GroupedStream(self._stream, self._keys)._totals(self._aggregations)
        return self._stream._totals(self._aggregations)

    def _with(self, found: Given, total: bool) -> ChainedAggregation:
        if self._aggregations and total is not self._total:
            raise InvalidTopologyError(
                f"chained_agg ({caller()}): a chain has either aggregate or partition_aggregate, not both"
            )
        self._aggregations.append(found)
        self._total = total
        return self


class TridentState:
    """A state that batches are written to, or that is only asked; Storm's `TridentState`."""

    def __init__(self, draft: BatchDraft, factory: Any, stream: Stream | None) -> None:
        self._draft = draft
        self.factory = factory
        self._stream = stream
        self._owner = None if stream is None else stream._link.port.node

    def new_values_stream(self) -> Stream:
        """Returns the stream of what is new in the state: what its updater emits.

        Raises:
            InvalidTopologyError: it is a static state, to which nothing is written.
        """
        if self._stream is None:
            raise InvalidTopologyError(f"new_values_stream ({caller()}): nothing is written to a static state")
        return self._stream

    def parallelism_hint(self, tasks: int) -> TridentState:
        """Asks for a number of tasks, over which the state is spread."""
        self.new_values_stream().parallelism_hint(tasks)
        return self

    def used_by(self, number: int) -> int:
        """Returns the operation that has the state. Of a static one each operation has its own."""
        return number if self._owner is None else self._owner


def _callable(function: Any, what: str) -> Any:
    if isinstance(function, (BaseFunction, BaseFilter)):
        return function
    return checked(function, 1, what, caller(), "keep it with an aggregation or in a state")


def _known(stream: Stream, field: str, what: str) -> str:
    positions(stream._fields, (field,), what)
    return field
