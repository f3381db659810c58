"""The tuples that a windowed bolt holds, in the order in which they came.

They are in the key-value state, in slices. A slice is written once, when it is full or its micro-batch ends. It is
written again only if tuples other than the first ones have left it. Memory holds only the bounds of slices, which
answer most questions of the rules without the tuples. The bounds are in the state too, in blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

from storm_on_spark.api.state import KeyValueState
from storm_on_spark.api.tuple import HeldTuples, Tuple

OWN = "\0window"
"""First part of the keys of windows. Keys of users in the same state differ from it."""

_FULL = 1024
"""The most tuples of a slice. If tuples leave the window from its middle, it is written again."""
_LEAST = 32
"""Fewer tuples than this are written with the queue itself, until more have come."""
_BLOCK = 64
"""The number of slices whose bounds are written together."""


class Slice(NamedTuple):
    """The bounds of a slice."""

    number: int
    """Its place in the order; -1 for the slice to which tuples are added."""
    size: int
    first: int
    """Sequence number of its first tuple."""
    last: int
    """Sequence number of its last tuple."""
    low: int
    """Its earliest timestamp."""
    high: int
    """Its latest timestamp."""
    tracked: bool
    """Whether any tuple belongs to a tree."""
    skip: int = 0
    """How many tuples have left it at its beginning."""


class Content(NamedTuple):
    """The tuples of a slice."""

    sequence: Sequence[int]
    stamps: Sequence[int]
    held: HeldTuples


class Part(NamedTuple):
    """Some tuples of a slice."""

    slice: Slice
    places: Sequence[int] | None = None
    """Their places in the slice, ascending; None for all."""

    @property
    def size(self) -> int:
        """The number of tuples."""
        return self.slice.size if self.places is None else len(self.places)


class EventQueue:
    """The tuples of one task.

    Call `attach` before anything else, also after unpickling.

    Example:
        >>> from storm_on_spark.runtime.state.keyvalue.state import StoredState
        >>> from storm_on_spark.testing import make_tuple
        >>> queue = EventQueue()
        >>> queue.attach(StoredState())
        >>> for stamp in (1000, 3000, 2000):
        ...     queue.add(make_tuple([stamp]), stamp)
        >>> [(part.size, part.low, part.high) for part in queue.slices()]
        [(3, 1000, 3000)]
        >>> queue.count_until(2500), queue.earliest(1000, 9000)
        (2, 2000)
    """

    def __init__(self) -> None:
        #: How many tuples there have been.
        self.next_sequence = 0
        self._next_number = 0
        #: Numbers of the existing blocks, and of the one that is not full.
        self._blocks: list[int] = []
        self._tail: list[Slice] = []
        #: The tuples of the slice that tuples are added to, and their sequence numbers and timestamps.
        self._tuples: list[Tuple] = []
        self._sequence: list[int] = []
        self._stamps: list[int] = []
        #: The bounds of that slice, or of its first tuples; see `_opened`. None for an empty one.
        self._open: Slice | None = None
        self._size = 0

    def attach(self, state: KeyValueState) -> None:
        """Sets the state that holds the slices."""
        self._state = state
        #: Of full blocks, as they are in the state; a block is there while any of its slices is.
        self._full: dict[int, list[Slice]] = {number: state.get((OWN, "block", number)) for number in self._blocks}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_state", "_full")}

    # --- adding ----------------------------------------------------------------------------------------------------

    def add(self, tup: Tuple, stamp: int) -> None:
        """Adds a tuple that has just come."""
        self._tuples.append(tup)
        self._sequence.append(self.next_sequence)
        self._stamps.append(stamp)
        self.next_sequence += 1
        self._size += 1
        if len(self._tuples) >= _FULL:
            self._close_slice()

    def settle(self) -> None:
        """Prepares for being written, at the end of a micro-batch."""
        if len(self._tuples) >= _LEAST:
            self._close_slice()

    def _opened(self) -> Slice | None:
        """Returns the bounds of the slice that tuples are added to; None if it is empty.

        They are computed on demand and not for each tuple, which took a quarter of a tuple's time in a window.
        """
        was, size = self._open, len(self._tuples)
        begin = 0 if was is None else was.size
        if begin < size:
            stamps = self._stamps[begin:] if begin else self._stamps
            low, high = min(stamps), max(stamps)
            tracked = any(tup.message_id for tup in (self._tuples[begin:] if begin else self._tuples))
            if was is not None:
                low, high, tracked = min(was.low, low), max(was.high, high), was.tracked or tracked
            self._open = Slice(-1, size, self._sequence[0], self._sequence[-1], low, high, tracked)
        return self._open

    def _close_slice(self) -> None:
        number = self._next_number
        self._next_number += 1
        opened = self._opened()
        assert opened is not None, "a slice without tuples"
        self._put(number, Content(self._sequence, self._stamps, HeldTuples(self._tuples)))
        self._tail.append(opened._replace(number=number))
        self._tuples, self._sequence, self._stamps, self._open = [], [], [], None
        if (number + 1) % _BLOCK == 0:
            block = number // _BLOCK
            if self._tail:
                self._blocks.append(block)
                self._full[block] = self._tail
                self._state.put((OWN, "block", block), self._tail)
            self._tail = []

    def _put(self, number: int, content: Content) -> None:
        self._state.put((OWN, "slice", number), tuple(content))

    # --- reading ---------------------------------------------------------------------------------------------------

    def slices(self) -> Iterator[Slice]:
        """Yields the bounds of all slices, in order."""
        for block in self._full.values():
            yield from block
        yield from self._tail
        opened = self._opened()
        if opened is not None:
            yield opened

    def __len__(self) -> int:
        return self._size

    @property
    def own_keys(self) -> int:
        """The number of keys in the state that belong to the queue."""
        return len(self._full) + len(self._tail) + sum(map(len, self._full.values()))

    def _content(self, part: Slice) -> Content:
        return Content(*self._state.get((OWN, "slice", part.number)))

    def marks(self, part: Slice) -> tuple[Sequence[int], Sequence[int]]:
        """Returns sequence numbers and timestamps of the tuples of a slice."""
        if part.number < 0:
            return self._sequence, self._stamps
        content = self._content(part)
        return content.sequence[part.skip :], content.stamps[part.skip :]

    def tuples(self, part: Part) -> list[Tuple]:
        """Returns tuples."""
        whole, places = part
        held = self._tuples if whole.number < 0 else self._content(whole).held.tuples()[whole.skip :]
        return list(held) if places is None else [held[place] for place in places]

    def count_until(self, reference: int) -> int:
        """Returns how many tuples have a timestamp of at most `reference`."""
        return sum(part.size for part in self.until(reference))

    def until(self, reference: int) -> Iterator[Part]:
        """Yields the tuples with a timestamp of at most `reference`."""
        return self.between(None, reference)

    def between(self, start: int | None, end: int) -> Iterator[Part]:
        """Yields the tuples with a timestamp after `start` and not after `end`."""
        for part in self.slices():
            after = start is None or part.low > start
            if part.low > end or (start is not None and part.high <= start):
                continue
            if after and part.high <= end:
                yield Part(part)
                continue
            stamps = self.marks(part)[1]
            places = [at for at, stamp in enumerate(stamps) if stamp <= end and (start is None or stamp > start)]
            if places:
                yield Part(part, places)

    def earliest(self, start: int, end: int) -> int | None:
        """Returns the least timestamp after `start` and not after `end`, or None."""
        found: int | None = None
        for part in self.slices():
            if part.high <= start or part.low > (end if found is None else found - 1):
                continue
            low = part.low
            if low <= start:
                low = min(stamp for stamp in self.marks(part)[1] if stamp > start)
            if low <= end and (found is None or low < found):
                found = low
        return found

    # --- removing --------------------------------------------------------------------------------------------------

    def remove(self, parts: Iterable[Part]) -> None:
        """Removes tuples, with at most one part for each slice."""
        changed: dict[int, Slice | None] = {}
        for part in parts:
            self._size -= part.size
            if part.slice.number < 0:
                self._remove_open(part.places)
            else:
                changed[part.slice.number] = self._remove_from(part)
        if not changed:
            return
        self._tail = _replaced(self._tail, changed)
        for block in {number // _BLOCK for number in changed}.intersection(self._full):
            left = _replaced(self._full[block], changed)
            if left:
                self._full[block] = left
                self._state.put((OWN, "block", block), left)
            else:
                del self._full[block]
                self._blocks.remove(block)
                self._state.delete((OWN, "block", block))

    def _remove_open(self, places: Sequence[int] | None) -> None:
        was = self._opened()
        stay = [False] * len(self._tuples) if places is None else _others(places, len(self._tuples))
        self._tuples = list(compress(self._tuples, stay))
        self._sequence = list(compress(self._sequence, stay))
        self._stamps = list(compress(self._stamps, stay))
        self._open = None
        if self._tuples and was is not None:
            self._open = _bounds(was, self._sequence, self._stamps)

    def _remove_from(self, part: Part) -> Slice | None:
        """Removes tuples of a closed slice; returns its new bounds, None if nothing is left of it."""
        was = part.slice
        if part.places is None or len(part.places) == was.size:
            self._state.delete((OWN, "slice", was.number))
            return None
        content, gone = self._content(was), len(part.places)
        if part.places[-1] == gone - 1:
            skip = was.skip + gone
            return _bounds(was, content.sequence[skip:], content.stamps[skip:])._replace(skip=skip)
        stay = [*[False] * was.skip, *_others(part.places, was.size)]
        sequence = list(compress(content.sequence, stay))
        stamps = list(compress(content.stamps, stay))
        self._put(was.number, Content(sequence, stamps, HeldTuples(list(compress(content.held.tuples(), stay)))))
        return _bounds(was, sequence, stamps)._replace(skip=0)


def joined(parts: Iterable[Part]) -> list[Part]:
    """Merges parts, so that there is one for each slice."""
    found: dict[int, Part] = {}
    for part in parts:
        other = found.get(part.slice.number)
        if other is None:
            found[part.slice.number] = part
        else:
            places = [*(part.places or range(part.slice.size)), *(other.places or range(part.slice.size))]
            found[part.slice.number] = Part(part.slice, sorted(set(places)))
    return list(found.values())


def _others(places: Sequence[int], size: int) -> list[bool]:
    stay = [True] * size
    for place in places:
        stay[place] = False
    return stay


def _bounds(was: Slice, sequence: Sequence[int], stamps: Sequence[int]) -> Slice:
    """Returns the bounds of what is left of a slice."""
    return was._replace(size=len(sequence), first=sequence[0], last=sequence[-1], low=min(stamps), high=max(stamps))


def _replaced(slices: list[Slice], changed: dict[int, Slice | None]) -> list[Slice]:
    found = [changed.get(part.number, part) for part in slices]
    return [part for part in found if part is not None]
