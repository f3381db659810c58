"""Key-value state of a bolt, for state too large to be written whole after every micro-batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from storm_on_spark.api.component import BaseRichBolt


class KeyValueState(ABC):
    """A mapping that is as durable and exact as the attributes of a bolt; only its changes are written.

    Keys must be hashable; keys and values must be picklable. A value that is changed in place must be `put` again,
    or the change is lost with the worker.

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
        """Removes `key`; returns the value that it had, or None."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields all (key, value); the state must not change meanwhile."""

    @abstractmethod
    def __contains__(self, key: object) -> bool: ...

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self.items()


class BaseStatefulBolt(BaseRichBolt):
    """A rich bolt with a `KeyValueState`; Storm's `IStatefulBolt`.

    `init_state` runs after `prepare` and before the first tuple. State is committed with the micro-batch, so it is
    exact without further code. The hooks exist for ported code that does something around a commit.

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

    @abstractmethod
    def init_state(self, state: KeyValueState) -> None:
        """Called with the task's state as of the last committed micro-batch.

        Args:
            state: keep it in an attribute; it is valid as long as the instance.
        """

    def pre_prepare(self, txid: int) -> None:
        """Called before the state of micro-batch `txid` is written."""

    def pre_commit(self, txid: int) -> None:
        """Called after `pre_prepare`, before the state of micro-batch `txid` is written; Spark commits in one step."""

    def pre_rollback(self) -> None:
        """Called before the instance is set to the last committed state.

        A micro-batch has to run again, or another worker has executed the task meanwhile.
        """


IStatefulBolt = BaseStatefulBolt
"""Storm's name, for ported code."""
