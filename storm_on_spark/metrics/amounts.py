"""What is counted, and under which keys. All amounts are integers, so that sums can be subtracted again exactly."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

Name = tuple[str, str | int, str]
"""What was counted, and two values that say more: see the constants below."""
Key = tuple[str, int, str, str | int, str]
"""A component, a task of it, and a `Name`."""
Amounts = dict[Key, int]

# Of a stream that the task emits to: (name, stream, "").
EMITTED: Final = "emitted"
TRANSFERRED: Final = "transferred"
# Of a stream that the task receives: (name, component, stream). Of a spout's messages: (name, "", stream).
EXECUTED: Final = "executed"
ACKED: Final = "acked"
FAILED: Final = "failed"
EXECUTE_NS: Final = "execute_ns"
PROCESS_NS: Final = "process_ns"
COMPLETE_NS: Final = "complete_ns"
# Of the task: (name, "", "").
BUSY_NS: Final = "busy_ns"
# Of a latency's sketch: (name, bin, ""); of a metric that a user registered: (name, bin, metric).
EXECUTE_BIN: Final = "execute_bin"
PROCESS_BIN: Final = "process_bin"
COMPLETE_BIN: Final = "complete_bin"
METRIC_BIN: Final = "metric_bin"
# Of such a metric: (name, metric, its kind).
METRIC: Final = "metric"

FORMER_TASK: Final = -1
"""Stands for all tasks that a component had before a rebalance and no longer has."""


def add(total: dict[Any, int], amounts: Mapping[Any, int]) -> None:
    """Adds amounts to a total.

    Example:
        >>> total = {"a": 1}
        >>> add(total, {"a": 2, "b": 3})
        >>> total
        {'a': 3, 'b': 3}
    """
    known = total.get
    for key, amount in amounts.items():
        total[key] = known(key, 0) + amount


def subtract(total: dict[Any, int], amounts: Mapping[Any, int]) -> None:
    """Subtracts amounts from a total, and removes the keys that come to zero."""
    for key, amount in amounts.items():
        left = total.get(key, 0) - amount
        if left:
            total[key] = left
        else:
            total.pop(key, None)


def pack(amounts: Mapping[Key, int]) -> bytes:
    """Returns amounts as bytes, for `unpack`.

    Example:
        >>> unpack(pack({("split", 3, "emitted", "default", ""): 7}))
        {('split', 3, 'emitted', 'default', ''): 7}
    """
    rows = [(*key, amount) for key, amount in amounts.items()]
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)


def unpack(data: bytes) -> Amounts:
    """Returns what `pack` was given.

    Raises:
        ValueError: `pack` has not made these bytes.
    """
    try:
        rows = json.loads(zlib.decompress(data))
        return {_key(*row[:5]): int(row[5]) for row in rows}
    except (zlib.error, TypeError, IndexError, KeyError) as error:
        raise ValueError(f"these are no amounts: {error}") from error


def _key(component: str, task: int, name: str, first: str | int, second: str) -> Key:
    return component, task, name, first, second


def moved(amounts: Mapping[Key, int], tasks: Mapping[str, Iterable[int]]) -> Amounts:
    """Returns the amounts of the present components; those of tasks that are gone count for `FORMER_TASK`.

    Args:
        amounts: of a former plan.
        tasks: of each component of the present plan.

    Example:
        >>> before = {("split", 3, "emitted", "default", ""): 7, ("gone", 4, "emitted", "default", ""): 1}
        >>> moved(before, {"split": [5, 6]})
        {('split', -1, 'emitted', 'default', ''): 7}
    """
    present = {name: frozenset(numbers) for name, numbers in tasks.items()}
    found: Amounts = {}
    for key, amount in amounts.items():
        known = present.get(key[0])
        if known is not None:
            place = key if key[1] in known else (key[0], FORMER_TASK, *key[2:])
            found[place] = found.get(place, 0) + amount
    return found
