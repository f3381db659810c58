"""Batches that are written as one unit: after a refusal they are divided until each refused row stands alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def divided(
    rows: Sequence[T], write: Callable[[Sequence[T]], Exception | None]
) -> Iterator[tuple[Sequence[T], Exception | None]]:
    """Writes rows in as few parts as possible, and yields what became of each part once it is known.

    Of n rows, of which k are refused, at most 1 + 2 k ⌈log₂ n⌉ parts are tried.

    Args:
        rows: written in their order.
        write: writes a part as one unit, all of it or nothing. Returns None, or why the rows were refused. What it
            raises is no matter of the rows, say a lost connection: it passes through, and what was not yielded until
            then is not written.

    Yields:
        In the order of the rows: a part and None if it was written; a single row and why it was refused.

    Example:
        >>> def write(part):
        ...     return ValueError("a number is above 0") if min(part) <= 0 else None
        >>> list(divided([1, 2, -3, 4], write))
        [([1, 2], None), ([-3], ValueError('a number is above 0')), ([4], None)]
    """
    left = [rows] if rows else []
    while left:
        part = left.pop()
        refusal = write(part)
        if refusal is None or len(part) == 1:
            yield part, refusal
        else:
            middle = len(part) // 2
            left += [part[middle:], part[:middle]]
