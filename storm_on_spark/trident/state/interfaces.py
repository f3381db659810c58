"""What a state is to a topology, and what users write to fill and to ask one; Storm's `org.apache.storm.trident.state`.

A key is a list of values, as many as there are fields to group by.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

T = TypeVar("T")
S_contra = TypeVar("S_contra", contravariant=True)

Key = Sequence[Any]


class Collects(Protocol):
    """Takes what an updater or a query function emits."""

    def emit(self, values: Sequence[Any]) -> None:
        """Emits the values of its fields."""

    def report_error(self, error: BaseException) -> None:
        """Shows `error` in the topology's status."""


class Store(Protocol):
    """Key-value state in the topology's checkpoint."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default`."""

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""

    def delete(self, key: Any) -> Any:
        """Removes `key`."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs."""


class State(ABC):
    """Where a task keeps what is left of batches. All changes by a batch are between the two calls."""

    keeps_elsewhere: ClassVar[bool] = False
    """Whether nothing of it is in its attributes. Otherwise these are saved in the checkpoint, as those of a bolt."""

    @abstractmethod
    def begin_commit(self, txid: int | None) -> None:
        """Begins the changes of a batch. Batches come in ascending order; one that failed comes again.

        Args:
            txid: the batch; None for tuples that belong to none.
        """

    @abstractmethod
    def commit(self, txid: int | None) -> None:
        """Ends the changes of a batch."""


class ReadOnlyState(State):
    """A state that topologies only ask."""

    def begin_commit(self, txid: int | None) -> None:
        """Refuses.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{type(self).__name__} is read-only: ask it with state_query, don't persist into it")

    def commit(self, txid: int | None) -> None:
        """Refuses.

        Raises:
            TypeError: always.
        """
        self.begin_commit(txid)


class StateFactory(ABC):
    """Makes the state of each task. It is pickled with the topology: let it read passwords where it runs."""

    writes_elsewhere: ClassVar[bool] = True
    """Whether its states write to another system. Batches then wait for micro-batches: once a batch is written, it must
    not come again with other tuples, and between micro-batches it could. Set it to False for states that keep all in
    their attributes."""

    @abstractmethod
    def make_state(
        self, conf: Mapping[str, Any], metrics: TopologyContext, partition_index: int, num_partitions: int
    ) -> State:
        """Returns the state of a task.

        Args:
            conf: the topology's configuration.
            metrics: the task's context, with which metrics can be registered.
            partition_index: which of the tasks over which the state is spread, from 0.
            num_partitions: how many these are.
        """


class StoredStateFactory(StateFactory):
    """Makes states in the topology's checkpoint."""

    writes_elsewhere = False

    @abstractmethod
    def make_state_in(self, store: Store, partition_index: int, num_partitions: int) -> State:
        """Returns the state of a task.

        Args:
            store: the part of the task's state that is for this one alone.
            partition_index: which of the tasks over which the state is spread, from 0.
            num_partitions: how many these are.
        """

    def make_state(  # noqa: D102
        self, conf: Mapping[str, Any], metrics: TopologyContext, partition_index: int, num_partitions: int
    ) -> State:
        raise TypeError(f"{type(self).__name__} makes states in a checkpoint: call make_state_in")


class _Prepared:
    """What updaters and query functions have in common."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once in each task, before anything else."""

    def cleanup(self) -> None:
        """Not called on Spark, like `cleanup` of bolts: nobody knows which worker will not be used again."""


class StateUpdater(_Prepared, ABC, Generic[S_contra]):
    """Writes the tuples of a batch to a state.

    Example:
        >>> class SetLocations(StateUpdater):
        ...     def update_state(self, state, tuples, collector):
        ...         state.multi_put([[tup["user"]] for tup in tuples], [tup["place"] for tup in tuples])
    """

    @abstractmethod
    def update_state(self, state: S_contra, tuples: Sequence[Tuple], collector: Collects) -> None:
        """Writes tuples of one batch, between the state's `begin_commit` and `commit`; may emit new values."""


BaseStateUpdater = StateUpdater
"""Storm's name, for ported code."""


class QueryFunction(_Prepared, ABC, Generic[S_contra]):
    """Asks a state for the tuples of a batch.

    Example:
        >>> class GetLocation(QueryFunction):
        ...     def batch_retrieve(self, state, tuples):
        ...         return state.multi_get([[tup["user"]] for tup in tuples])
        ...     def execute(self, tup, result, collector):
        ...         collector.emit([result])
    """

    @abstractmethod
    def batch_retrieve(self, state: S_contra, tuples: Sequence[Tuple]) -> Sequence[Any]:
        """Returns an answer for each tuple, in their order."""

    @abstractmethod
    def execute(self, tup: Tuple, result: Any, collector: Collects) -> None:
        """Emits the new fields for a tuple and its answer, any number of times."""


BaseQueryFunction = QueryFunction
"""Storm's name, for ported code."""


class ValueUpdater(ABC, Generic[T]):
    """Makes a new value of a stored one."""

    @abstractmethod
    def update(self, stored: T | None) -> T:
        """Returns the new value.

        Args:
            stored: the value before; None if there is none.
        """


class ReadOnlyMapState(State, Generic[T]):
    """A state of values by key."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:
        """Returns the value of each key, or None."""


class MapState(ReadOnlyMapState[T]):
    """A state of values by key that can be changed."""

    @abstractmethod
    def multi_update(self, keys: Sequence[Key], updaters: Sequence[ValueUpdater[T]]) -> list[T]:
        """Changes values, and returns the new ones.

        Args:
            keys: which; each once.
            updaters: one for each key.
        """

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:
        """Sets values."""


class RemovableMapState(State):
    """A state of values by key that can be removed."""

    @abstractmethod
    def multi_remove(self, keys: Sequence[Key]) -> None:
        """Removes keys."""


class ReadOnlySnapshottable(State, Generic[T]):
    """A state of one value."""

    @abstractmethod
    def get(self) -> T | None:
        """Returns the value, or None."""


class Snapshottable(ReadOnlySnapshottable[T]):
    """A state of one value that can be changed."""

    @abstractmethod
    def update(self, updater: ValueUpdater[T]) -> T:
        """Changes the value, and returns the new one."""

    @abstractmethod
    def set(self, value: T) -> None:
        """Sets the value."""


class ITupleCollection(ABC):
    """A state whose entries can be listed."""

    @abstractmethod
    def get_tuples(self) -> Iterator[list[Any]]:
        """Yields each entry: the values of its key, then its value."""


class IBackingMap(ABC, Generic[T]):
    """A store of values by key: what a user writes for a system that is not here yet.

    What is stored is what the kind of state wants: `OpaqueValue`, `TransactionalValue`, or the value itself.
    """

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[T | None]:
        """Returns what is stored for each key, or None."""

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[T]) -> None:
        """Stores a value for each key."""
