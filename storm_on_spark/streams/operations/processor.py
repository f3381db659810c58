"""The base of operations: a description that can be pickled, and its form in a task."""

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
    """State of one operation in one task: like `KeyValueState`, but only with the keys of this operation."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""

    def delete(self, key: Any) -> Any:
        """Removes `key`."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs."""


class Partials(Protocol):
    """The partial results of one operation, by slide of the window, kept instead of the window's values."""

    def add(self, key: Any, value: Any) -> None:
        """Adds a value to the present slide."""

    def totals(self) -> Iterator[tuple[Any, Any]]:
        """Yields the keys that have values in the evaluated window, with their accumulators."""


@dataclass(frozen=True)
class Place:
    """The surroundings in which an operation is executed."""

    forward: Sequence[Consume]
    """Functions that take the results, one for each output."""
    store: Store
    """The operation's state."""
    windowed: bool
    """Whether values come window by window; then results for a whole window are due in `Bound.finish`."""
    held: dict[Any, Any] = field(default_factory=dict)
    """Its data until the end of the window; picklable."""
    partials: Partials | None = None
    """Its partial results of windows, if it keeps these; None if it gets the values of one window after another."""
    batch: Any = None
    """The batch that the values belong to, if they come in batches with an id; a batch is a window."""
    task: Any = None
    """Data of a front end for its operations."""


@dataclass(frozen=True)
class Bound:
    """An operation that is connected in a task."""

    inputs: Sequence[Consume]
    """Functions that take the values of each input."""
    finish: Callable[[], None] | None = None
    """Called at the end of each window, after all its values."""


@dataclass(frozen=True)
class Processor(ABC):
    """The description of an operation.

    Its functions are the user's. Its data between two values is in the store, or, within a window, in `Place.held`.
    """

    name: ClassVar[str]
    """The user's name for it."""
    stateful: ClassVar[bool] = False
    """Whether it has state from one value to the next, outside of windows."""
    gathers: ClassVar[bool] = False
    """Whether it gives results for a whole window instead of for each value."""
    by_key: ClassVar[bool] = False
    """Whether one task has to get all pairs with one key."""
    ends_window: ClassVar[bool] = False
    """Whether its results no longer belong to a window."""
    acts: ClassVar[bool] = False
    """Whether it is used for its side effect, so that it matters in how many windows it gets a value."""

    @property
    def outputs(self) -> int:
        """The number of its outputs."""
        return 1

    @property
    def beside(self) -> int | None:
        """The operation whose bolt it must share, because it uses that operation's state."""
        return None

    @property
    def folds(self) -> bool:
        """Whether it folds the values of a window, one after the other, into an accumulator for each key."""
        return False

    @property
    def merges(self) -> bool:
        """Whether the accumulators of parts of a window can be merged; if so, it `folds`."""
        return False

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: B027
        """Called once in each task, before `bind`."""

    @abstractmethod
    def bind(self, place: Place) -> Bound:
        """Returns the operation, ready to take values."""
