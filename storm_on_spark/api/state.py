"""Key-value state of a bolt, for state that is too large to write in full after every micro-batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from storm_on_spark.api.component import BaseRichBolt, BatchBolt


class KeyValueState(ABC):
    """A mapping that is as durable and exact as the attributes of a bolt, but only its changes are written.

    Keys must be hashable; keys and values must be picklable. After changing a value in place, `put` it again;
    otherwise the change is lost with the worker.

    Example:
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> state = StoredState()
        >>> state.put("storm", state.get("storm", 0) + 1)
        >>> state.get("storm"), "spark" in state, list(state.items())
        (1, False, [('storm', 1)])
    """

    @abstractmethod
    def get(self, key: Any, default: Any = None) -> Any:
        """Returns the value of `key`, or `default` if there is none."""

    @abstractmethod
    def put(self, key: Any, value: Any) -> None:
        """Sets the value of `key`."""

    @abstractmethod
    def delete(self, key: Any) -> Any:
        """Removes `key`, and returns its value or None."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all pairs (key, value); the state must not change meanwhile."""

    def ahead(self, keys: Iterable[Any]) -> Iterator[Any]:
        """Yields keys whose entries are to be read or changed, with as little reading as possible.

        If the state is larger than memory, the entries of many keys are read together, and keys come in the order in
        which they are stored. One by one, each would be looked up in pages of many entries.

        Args:
            keys: each once. The state may change while they are yielded.

        Example:
            >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
            >>> state = StoredState()
            >>> state.put("storm", 1)
            >>> [(key, state.get(key)) for key in state.ahead(["storm", "spark"])]
            [('storm', 1), ('spark', None)]
        """
        return iter(keys)

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self.items()


class _Stateful(ABC):
    """What bolts with a `KeyValueState` have in common."""

    @abstractmethod
    def init_state(self, state: KeyValueState) -> None:
        """Called with the task's state as of the last committed micro-batch.

        Args:
            state: keep it in an attribute; it stays valid as long as the instance.
        """

    # Not abstract: the hooks are for ported code.
    def pre_prepare(self, txid: int) -> None:  # noqa: B027
        """Called before the state of micro-batch `txid` is written."""

    def pre_commit(self, txid: int) -> None:  # noqa: B027
        """Called after `pre_prepare`, before the state of micro-batch `txid` is written; Spark commits in one step."""

    def pre_rollback(self) -> None:  # noqa: B027
        """Called before the instance is reset to the last committed state.

        This happens when a micro-batch must run again, or when another worker has executed the task meanwhile.
        """


class BaseStatefulBolt(_Stateful, BaseRichBolt):
    """A rich bolt with a `KeyValueState`; Storm's `IStatefulBolt`.

    `init_state` runs after `prepare` and before the first tuple. State is committed with the micro-batch, so it is
    exact without further code. The hooks are for ported code that acts around a commit.

    Example:
        >>> class WordCount(BaseStatefulBolt):
        ...     def prepare(self, conf, context, collector):
        ...         self.collector = collector
        ...     def init_state(self, state):
        ...         self.counts = state
        ...     def execute(self, tup):
        ...         self.counts.put(tup["word"], self.counts.get(tup["word"], 0) + 1)
        ...         self.collector.ack(tup)
    """

    state_layout: str | None = None
    """What the state holds and in which order, in words. A checkpoint in which it was another can't be continued."""


class StatefulBatchBolt(_Stateful, BatchBolt):
    """A columnar bolt with a `KeyValueState`.

    Example:
        >>> class Largest(StatefulBatchBolt):
        ...     def init_state(self, state):
        ...         self.state = state
        ...     def execute_batch(self, batch, collector):
        ...         import pyarrow.compute
        ...         largest = pyarrow.compute.max(batch["number"]).as_py()
        ...         self.state.put("largest", max(largest, self.state.get("largest", largest)))
        >>> import pyarrow
        >>> from storm_on_spark.testing import BoltTester
        >>> tester = BoltTester(Largest())
        >>> for numbers in ([1, 5], [3]):
        ...     tester.execute(pyarrow.record_batch({"number": numbers}))
        >>> tester.state.get("largest")
        5
    """


STATEFUL_BOLTS = (BaseStatefulBolt, StatefulBatchBolt)
"""The base classes of bolts with a `KeyValueState`."""

IStatefulBolt = BaseStatefulBolt
"""Storm's name, for ported code."""
