"""The numbers of the panes that have something, in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable


class PaneNumbers:
    """Numbers, ascending. A window may have very many panes, so no question goes through all of them.

    Args:
        numbers: to begin with, in any order.

    Example:
        >>> numbers = PaneNumbers([7, 3])
        >>> numbers.add(5)
        >>> numbers.between(3, 7), numbers.earliest(4, 9), numbers.drop_before(6), numbers.between(0, 9)
        ([3, 5], 5, [3, 5], [7])
    """

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._numbers = sorted(numbers)

    def add(self, number: int) -> None:
        """Adds a number that is not there."""
        insort(self._numbers, number)

    def between(self, start: int, end: int) -> list[int]:
        """Returns the numbers from `start` on and before `end`."""
        first = bisect_left(self._numbers, start)
        return self._numbers[first : bisect_left(self._numbers, end, first)]

    def earliest(self, start: int, end: int) -> int | None:
        """Returns the first number from `start` on and before `end`, or None."""
        at = bisect_left(self._numbers, start)
        return self._numbers[at] if at < len(self._numbers) and self._numbers[at] < end else None

    def drop_before(self, start: int) -> list[int]:
        """Removes the numbers before `start`, and returns them."""
        at = bisect_left(self._numbers, start)
        gone = self._numbers[:at]
        del self._numbers[:at]
        return gone
