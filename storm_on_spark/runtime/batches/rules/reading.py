"""Which native spouts may read on: a source is held while its spout keeps too many rows.

Spark itself reads the rows of a native spout, so nothing slows it down when they fail. What the spout keeps of them
is known here in two parts: what it reported last, and what micro-batches left since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

MOST_KEPT = 10_000
"""Rows that a native spout keeps for another attempt until its source is held, where `topology.max.spout.pending` is
not set. Rows under way for the first time don't count then: a bolt may hold tuples for a window as long as it likes."""


class ReadingRules:
    """Which native spouts may read on.

    Args:
        limits: by task of a native spout: how many messages may be pending; None where that is not set.

    Example:
        >>> rules = ReadingRules({3: 500})
        >>> rules.left(0, {3: 2000})
        >>> rules.held(active=True), rules.held(active=False)
        (frozenset({3}), frozenset({3}))
        >>> rules.reported(3, 0, pending=499, again=499)
        >>> rules.held(active=True)
        frozenset()
    """

    def __init__(self, limits: Mapping[int, int | None]) -> None:
        self._limits = limits
        #: Task -> messages that count, of micro-batches up to `_settled`.
        self._known = dict.fromkeys(limits, 0)
        self._settled = dict.fromkeys(limits, -1)
        #: Task -> micro-batch -> rows that it did not ack, as far as the task has not said that it heard of them.
        self._left: dict[int, dict[int, int]] = defaultdict(dict)

    def left(self, batch: int, rows: Mapping[int, int]) -> None:
        """Takes in how many rows of each task a micro-batch did not ack, in place of those of an earlier attempt."""
        for task in self._limits:
            if rows.get(task) and batch > self._settled[task]:
                self._left[task][batch] = rows[task]
            else:
                self._left[task].pop(batch, None)

    def reported(self, task: int, settled: int, *, pending: int, again: int) -> None:
        """Takes in what a task says.

        Args:
            task: any task of a spout.
            settled: the last micro-batch whose outcomes it has heard.
            pending: its messages that are not done.
            again: those of them that are kept for another attempt.
        """
        if task not in self._limits:
            return
        self._settled[task] = settled
        self._known[task] = again if self._limits[task] is None else pending
        self._left[task] = {batch: rows for batch, rows in self._left[task].items() if batch > settled}

    def held(self, active: bool) -> frozenset[int]:
        """Returns the tasks whose sources may not read; of inactive spouts none may."""
        return frozenset(
            task
            for task, limit in self._limits.items()
            if not active
            or self._known[task] + sum(self._left[task].values()) >= (MOST_KEPT if limit is None else limit)
        )
