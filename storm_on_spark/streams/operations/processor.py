"""The base of operations: a description that can be pickled, and what it becomes in a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext

Consume: TypeAlias = Callable[[Any], None]
"""Takes one value."""


class Store(Protocol):
    """State of one operation in one task: what `KeyValueState` offers, without the keys of other operations."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""

    def delete(self, key: Any) -> Any:
        """Removes `key`."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs."""


class Partials(Protocol):
    """The partial results of one operation, by slide of the window: they are kept instead of the window's values."""

    def add(self, key: Any, value: Any) -> None:
        """Adds a value to the present slide."""

    def totals(self) -> Iterator[tuple[Any, Any]]:
        """Yields the keys that have something in the window that is evaluated, with their accumulators."""


@dataclass(frozen=True)
class Place:
    """Where an operation is executed."""

    forward: Sequence[Consume]
    """Takes the results, one function for each output."""
    store: Store
    """The operation's state."""
    windowed: bool
    """Whether values come window by window: results for a whole window are due in `Bound.finish`."""
    held: dict[Any, Any] = field(default_factory=dict)
    """What it keeps until the end of the window; picklable."""
    partials: Partials | None = None
    """Where it keeps partial results of windows instead; None if it gets the values of one window after another."""
    batch: Any = None
    """The batch that the values belong to, where they come in batches with an id: a batch is a window."""
    task: Any = None
    """What a front end gives to its operations."""


@dataclass(frozen=True)
class Bound:
    """An operation in a task."""

    inputs: Sequence[Consume]
    """Takes the values of each input."""
    finish: Callable[[], None] | None = None
    """Called at the end of each window, after all its values."""


@dataclass(frozen=True)
class Processor(ABC):
    """What an operation does.

    Its functions are the user's. What it keeps between two values is in the store, or, within a window, in
    `Place.held`.
    """

    name: ClassVar[str]
    """As the user calls it."""
    stateful: ClassVar[bool] = False
    """Whether it keeps something from one value to the next, outside of windows."""
    gathers: ClassVar[bool] = False
    """Whether it gives results for a whole window instead of for each value."""
    by_key: ClassVar[bool] = False
    """Whether one task has to get all pairs with one key."""
    ends_window: ClassVar[bool] = False
    """Whether what comes after it belongs to no window any more."""
    acts: ClassVar[bool] = False
    """Whether it is there for what it does with each value, so that it matters in how many windows it sees it."""

    @property
    def outputs(self) -> int:
        """The number of its outputs."""
        return 1

    @property
    def beside(self) -> int | None:
        """The operation in whose bolt it has to be, because it uses that one's state."""
        return None

    @property
    def folds(self) -> bool:
        """Whether it folds the values of a window, one after the other, into an accumulator for each key."""
        return False

    @property
    def merges(self) -> bool:
        """Whether the accumulators of parts of a window can be made one; if so, it `folds`."""
        return False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: B027
        """Called once in each task, before `bind`."""

    @abstractmethod
    def bind(self, place: Place) -> Bound:
        """Returns the operation, ready to take values."""
