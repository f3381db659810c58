"""Connects the operations of a bolt: descriptions become functions that call each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.errors import FailedException, OperationError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.api.text.traces import summary
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.graph.model import Operation, Port
from storm_on_spark.streams.operations.processor import Consume, Partials, Place, Store

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


class Shape(Enum):
    """The form of a value in a tuple."""

    TUPLE = "the tuple itself"
    VALUE = "its first field"
    PAIR = "its first two fields"
    ROW = "all fields but the first, which is the batch's id"


@dataclass(frozen=True)
class Entry:
    """The receiver of a stream's tuples."""

    component: str
    stream: str
    shape: Shape
    operation: int
    input: int


@dataclass(frozen=True)
class Program:
    """What a bolt executes."""

    operations: tuple[Operation, ...]
    entries: tuple[Entry, ...]
    outputs: Mapping[Port, str]
    """The streams of the results that other bolts receive."""
    windowed: bool = False
    timestamp_field: str | None = None
    """The field with the event time, which results carry along; None if no window needs it."""

    @property
    def layout(self) -> str:
        """A description of the state's layout; a checkpoint with another layout can't be continued."""
        return ", ".join(operation.processor.name for operation in self._keepers())

    def _keepers(self) -> list[Operation]:
        return [
            operation
            for operation in self.operations
            if operation.processor.stateful and operation.processor.beside in (None, operation.id)
        ]

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepares the operations of a task."""
        for operation in self.operations:
            operation.processor.prepare(conf, context)

    def stores(self, state: KeyValueState | None) -> dict[int, Store]:
        """Returns the state of each operation, as a part of the bolt's."""
        numbers = {operation.id: number for number, operation in enumerate(self._keepers())}
        found: dict[int, Store] = {}
        for operation in self.operations:
            beside = operation.processor.beside
            owner = operation.id if beside is None else beside
            found[operation.id] = (
                NO_STATE if state is None or owner not in numbers else ScopedState(state, numbers[owner])
            )
        return found

    def start(
        self,
        emit: Callable[[Sequence[Any], str], None],
        stores: Mapping[int, Store],
        held: dict[int, dict[Any, Any]] | None = None,
        batch: Any = None,
        task: Any = None,
        partials: Mapping[int, Partials] | None = None,
    ) -> Running:
        """Returns the operations, ready for tuples.

        Args:
            emit: called with values and stream.
            stores: from `stores`.
            held: the data that operations keep until the end of the window or batch, by operation; empty at its
                beginning.
            batch: the id of the batch that the tuples belong to, if any.
            task: data of a front end for its operations.
            partials: where operations keep partial results of windows, by operation.
        """
        running = Running(self, emit)
        held = {} if held is None else held
        inputs: dict[int, Sequence[Consume]] = {}
        finishes: list[Callable[[], None]] = []
        for operation in reversed(self.operations):
            processor = operation.processor
            forward = [
                self._forward(Port(operation.id, output), operation, inputs, running)
                for output in range(processor.outputs)
            ]
            gathered = held.setdefault(operation.id, {})
            kept = None if partials is None else partials.get(operation.id)
            place = Place(forward, stores[operation.id], self.windowed, gathered, kept, batch, task)
            bound = processor.bind(place)
            inputs[operation.id] = [_labelled(consume, operation.label) for consume in bound.inputs]
            if bound.finish is not None:
                finishes.append(_labelled_finish(bound.finish, operation.label))
        running.finishes = finishes[::-1]
        for entry in self.entries:
            target = inputs[entry.operation][entry.input]
            running.entries.setdefault((entry.component, entry.stream), []).append(_reading(entry.shape, target))
        return running

    def _forward(
        self, port: Port, operation: Operation, inputs: Mapping[int, Sequence[Consume]], running: Running
    ) -> Consume:
        targets = [
            inputs[consumer.id][number]
            for consumer in self.operations
            for number, link in enumerate(consumer.links)
            if link.port == port and not link.grouping and not link.window
        ]
        if (stream := self.outputs.get(port)) is not None:
            targets.append(running.emitter(stream, operation))
        if len(targets) == 1:
            return targets[0]

        def forward(value: Any) -> None:
            for target in targets:
                target(value)

        return forward


class Running:
    """The operations of a bolt in a task."""

    def __init__(self, program: Program, emit: Callable[[Sequence[Any], str], None]) -> None:
        self._emit = emit
        self._timed = program.timestamp_field
        #: The receiver of the tuples of each (component, stream).
        self.entries: dict[tuple[str, str], list[Consume]] = {}
        #: The calls at a window's end, in the operations' order.
        self.finishes: list[Callable[[], None]] = []
        #: The event time of the present tuple, for results.
        self.timestamp: Any = None

    def take(self, tup: Tuple) -> None:
        """Executes the operations for a tuple."""
        if self._timed is not None:
            self.timestamp = tup[self._timed]
        self.gather(tup)

    def gather(self, tup: Tuple) -> None:
        """Executes the operations for a tuple of a window; its results have the window's time."""
        for consume in self.entries.get((tup.source_component, tup.source_stream), ()):
            consume(tup)

    def finish(self) -> None:
        """Ends a window."""
        for finish in self.finishes:
            finish()

    def emitter(self, stream: str, operation: Operation) -> Consume:
        """Returns a function that emits an operation's results on a stream."""
        emit, pairs = self._emit, operation.pairs
        if operation.fields is not None:
            return lambda row: emit(row, stream)
        if self._timed is not None:

            def emit_timed(value: Any) -> None:
                emit([*(value if pairs else (value,)), self.timestamp], stream)

            return emit_timed
        if pairs:
            return lambda pair: emit([pair[0], pair[1]], stream)
        return lambda value: emit([value], stream)


class ScopedState:
    """The state of one operation: a part of the bolt's `KeyValueState`.

    Example:
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> whole = StoredState()
        >>> ScopedState(whole, 0).put("storm", 1)
        >>> ScopedState(whole, 1).get("storm", 0), list(ScopedState(whole, 0).items())
        (0, [('storm', 1)])
    """

    def __init__(self, state: KeyValueState, number: int) -> None:
        self._state, self._number = state, number

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""
        return self._state.get((self._number, key), default)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""
        self._state.put((self._number, key), value)

    def delete(self, key: Any) -> Any:
        """Removes `key`, and returns its value or None."""
        return self._state.delete((self._number, key))

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs."""
        return ((key, value) for (number, key), value in self._state.items() if number == self._number)


class _NoState:
    """The store of operations without state."""

    def get(self, key: Any, default: Any = None) -> Any:
        return default

    def put(self, key: Any, value: Any) -> None:
        raise RuntimeError("this bolt was built without state")

    def delete(self, key: Any) -> Any:
        return None

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(())


NO_STATE = _NoState()


def _labelled(consume: Consume, label: str) -> Consume:
    def call(value: Any) -> None:
        try:
            consume(value)
        except (FailedException, OperationError):
            raise
        except Exception as error:
            raise OperationError(f"{label}: {summary(error)}") from error

    return call


def _labelled_finish(finish: Callable[[], None], label: str) -> Callable[[], None]:
    call = _labelled(lambda _: finish(), label)
    return lambda: call(None)


def _reading(shape: Shape, target: Consume) -> Consume:
    if shape is Shape.TUPLE:
        return target
    if shape is Shape.PAIR:
        return lambda tup: target((tup[0], tup[1]))
    if shape is Shape.ROW:
        return lambda tup: target(tuple(tup.values[1:]))
    return lambda tup: target(tup[0])
