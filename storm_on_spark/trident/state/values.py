"""The rules by which a stored value takes part in a batch: pure functions of what is stored and of the batch's number.

A batch that is processed again has the number that it had before, its txid. So what is stored beside a value says
whether the batch is in it already.

| kind | stored | a later batch | the same batch again | an earlier batch |
|---|---|---|---|---|
| opaque | txid, value, value before | counts on from the value | counts on from the value before | refused |
| transactional | txid, value | counts on from the value | the value stays | counts on from the value, as in Storm |
| non-transactional | value | counts on from the value | counts on from the value | counts on from the value |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from storm_on_spark.api.errors import StormError


class StateType(Enum):
    """What is stored beside a value, and so what a state makes of a batch that comes again."""

    NON_TRANSACTIONAL = "non-transactional"
    TRANSACTIONAL = "transactional"
    OPAQUE = "opaque"


class StaleBatchError(StormError, RuntimeError):
    """A batch came that is older than what is stored."""

    def __init__(self, txid: int, stored: int) -> None:
        super().__init__(
            f"batch {txid} is behind the state, which has batch {stored} already: the state belongs to another run or "
            "checkpoint of the topology. Continue from that checkpoint, or begin with an empty state"
        )
        self.txid = txid
        self.stored = stored

    def __reduce__(self) -> tuple[type[StaleBatchError], tuple[int, int]]:
        return type(self), (self.txid, self.stored)


@dataclass(frozen=True)
class OpaqueValue:
    """A value with the one that it had before its last batch; Storm's `OpaqueValue`.

    A batch that comes again with other tuples replaces what it did before.

    Example:
        >>> stored = OpaqueValue(2, curr=7, prev=4)
        >>> stored.update(3, 9)
        OpaqueValue(curr_txid=3, curr=9, prev=7)
        >>> stored.update(2, 5)
        OpaqueValue(curr_txid=2, curr=5, prev=4)
    """

    curr_txid: int | None
    """The last batch that changed the value; None for a change outside of batches."""
    curr: Any
    prev: Any = None

    def get(self, txid: int | None) -> Any:
        """Returns the value without batch `txid`: the one that the batch counts on from.

        Args:
            txid: the batch that asks; None if none does.

        Raises:
            StaleBatchError: the batch is older than what is stored.
        """
        if txid is None or self.curr_txid is None or self.curr_txid < txid:
            return self.curr
        if self.curr_txid == txid:
            return self.prev
        raise StaleBatchError(txid, self.curr_txid)

    def update(self, txid: int | None, value: Any) -> OpaqueValue:
        """Returns what is stored once batch `txid` has set the value.

        Raises:
            StaleBatchError: the batch is older than what is stored.
        """
        return OpaqueValue(txid, value, self.get(txid))

    def without(self, txid: int) -> OpaqueValue:
        """Returns the value as if batch `txid` had not changed it.

        Storm's rule has no such step: a key that an attempt has changed, and the next attempt does not have, keeps what
        the failed attempt did.

        Example:
            >>> OpaqueValue(2, curr=7, prev=4).without(2)
            OpaqueValue(curr_txid=2, curr=4, prev=4)
            >>> OpaqueValue(2, curr=7, prev=4).without(3)
            OpaqueValue(curr_txid=2, curr=7, prev=4)
        """
        return OpaqueValue(txid, self.prev, self.prev) if self.curr_txid == txid else self


@dataclass(frozen=True)
class TransactionalValue:
    """A value with the last batch that changed it; Storm's `TransactionalValue`."""

    txid: int | None
    """The last batch that changed the value; None for a change outside of batches."""
    value: Any

    def has(self, txid: int | None) -> bool:
        """Returns whether batch `txid` is in the value already."""
        return txid is not None and txid == self.txid


def opaque_update(stored: OpaqueValue | None, txid: int | None, change: Callable[[Any], Any]) -> OpaqueValue:
    """Returns what is stored after a batch, by the rule for opaque values.

    Args:
        stored: what was there before the batch, or by an earlier attempt of it; None for nothing.
        txid: the batch.
        change: returns the new value for the one before the batch.

    Raises:
        StaleBatchError: the batch is older than what is stored.

    Example:
        >>> first = opaque_update(None, 1, lambda count: (count or 0) + 3)
        >>> opaque_update(first, 1, lambda count: (count or 0) + 5)
        OpaqueValue(curr_txid=1, curr=5, prev=None)
    """
    if stored is None:
        return OpaqueValue(txid, change(None))
    return stored.update(txid, change(stored.get(txid)))


def transactional_update(
    stored: TransactionalValue | None, txid: int | None, change: Callable[[Any], Any]
) -> TransactionalValue:
    """Returns what is stored after a batch, by the rule for transactional values.

    Example:
        >>> first = transactional_update(None, 1, lambda count: (count or 0) + 3)
        >>> transactional_update(first, 1, lambda count: (count or 0) + 5) is first
        True
    """
    if stored is None:
        return TransactionalValue(txid, change(None))
    return stored if stored.has(txid) else TransactionalValue(txid, change(stored.value))
