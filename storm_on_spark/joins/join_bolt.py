"""`JoinBolt`: joins streams within a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.wording import did_you_mean, name_fault, quoted
from storm_on_spark.joins.results import Results, first_stream
from storm_on_spark.joins.rules import JoinPlan, Kind, Selector, Step
from storm_on_spark.joins.selectors import Key
from storm_on_spark.windowing.bolts import BaseWindowedBolt

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import OutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.windowing.window import TupleWindow

J = TypeVar("J", bound="JoinBolt")


class JoinBolt(Results, BaseWindowedBolt):
    """Joins two or more streams within a window; Storm's `JoinBolt`.

    Group every stream by the fields on which it is joined. Streams are told apart by the component that emits them, or
    by their stream id, with `JoinBolt(Selector.STREAM, ...)`. A tuple is in no result if a field on which it is joined
    is missing or None. Each result is anchored to the tuples that it was made from.

    Args:
        args: an optional `Selector`; the first stream; the field on which it is joined, or a list of fields. A field
            inside of a map has dots: `order.buyer`.

    Example:
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> from storm_on_spark.windowing import Count
        >>> join = JoinBolt("users", "id").left_join("orders", "buyer", "users").select("name, item")
        >>> users = [make_tuple([1, "ann"], ["id", "name"], "users"), make_tuple([2, "bob"], ["id", "name"], "users")]
        >>> order = make_tuple([1, "book"], ["buyer", "item"], "orders")
        >>> tester = BoltTester(join.with_tumbling_window(Count(3)), [users[0], order])
        >>> tester.execute(*users, order)
        >>> tester.collector.values()
        [('ann', 'book'), ('bob', None)]
    """

    Selector: ClassVar[type[Selector]] = Selector

    def __init__(self, *args: Any) -> None:
        selector, stream, fields = first_stream(args, 'JoinBolt("users", "id")')
        self._plan = JoinPlan(selector, (Step(_named(stream), Key.of(stream, fields)),))

    def join(self: J, new_stream: str, field: str | Iterable[str], prior_stream: str) -> J:
        """Joins one more stream: each result has tuples of both.

        Args:
            new_stream: the stream.
            field: the field on which it is joined, or a list of as many fields as `prior_stream` has.
            prior_stream: the stream to join with, named before. Its tuples are looked up by the fields with which it
                was named.
        """
        return self._add(Kind.INNER, new_stream, field, prior_stream)

    def left_join(self: J, new_stream: str, field: str | Iterable[str], prior_stream: str) -> J:
        """Joins one more stream. Results without a partner in it stay, with None for its fields."""
        return self._add(Kind.LEFT, new_stream, field, prior_stream)

    def right_join(self: J, new_stream: str, field: str | Iterable[str], prior_stream: str) -> J:
        """Joins one more stream. Its tuples without a partner stay, with None for all other fields."""
        return self._add(Kind.RIGHT, new_stream, field, prior_stream)

    def full_join(self: J, new_stream: str, field: str | Iterable[str], prior_stream: str) -> J:
        """Joins one more stream. Whatever has no partner stays, on both sides."""
        return self._add(Kind.FULL, new_stream, field, prior_stream)

    def _add(self: J, kind: Kind, stream: str, field: str | Iterable[str], prior: str) -> J:
        known = self._plan.streams()
        if _named(stream) in known:
            raise InvalidTopologyError(f'stream "{stream}" is part of the join already; a stream is joined once')
        if prior not in known:
            raise InvalidTopologyError(
                f'{kind.value} of "{stream}" with "{prior}", which was not named before; there are: {quoted(known)}.'
                f"{did_you_mean(prior, known)}"
            )
        key = Key.of(stream, field)
        wanted = next(len(step.key.fields) for step in self._plan.steps if step.stream == prior)
        if len(key.fields) != wanted:
            raise InvalidTopologyError(
                f'{kind.value} of "{stream}" with "{prior}": {len(key.fields)} and {wanted} fields don\'t match'
            )
        self._plan = JoinPlan(self._plan.selector, (*self._plan.steps, Step(stream, key, prior, kind)))
        return self

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the selected fields."""
        if not self._select:
            raise InvalidTopologyError('the join has no output fields; call select("field, stream:field, ...")')
        declarer.declare_stream(self._stream, Fields([field.name for field in self._select]))

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Keeps the collector.

        Raises:
            InvalidTopologyError: a stream of the join is no input of the bolt, so there would never be a result.
        """
        self._collector = collector
        by_stream = self._plan.selector is Selector.STREAM
        inputs = [source.stream if by_stream else source.component for source in context.this_sources()]
        for stream in self._plan.streams():
            if stream not in inputs:
                raise InvalidTopologyError(
                    f'"{context.this_component_id}" joins "{stream}", which is none of its inputs'
                    f"{' by stream id' if by_stream else ''}: {quoted(dict.fromkeys(inputs))}."
                    f"{did_you_mean(stream, inputs)}"
                )

    def execute(self, window: TupleWindow) -> None:
        """Emits the joined tuples of a window."""
        for record in self._plan.join(window):
            self._collector.emit(self._plan.project(record, self._select), anchors=record, stream=self._stream)


def _named(stream: object) -> str:
    if fault := name_fault(stream):
        raise InvalidTopologyError(f"a stream of a join {fault}")
    assert isinstance(stream, str)
    return stream
