"""The window that a bolt evaluates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storm_on_spark.api.tuple import JointAnchors, Tuple
from storm_on_spark.windowing.content.queue import EventQueue, Part
from storm_on_spark.windowing.rules.manager import Activation


class TupleWindow:
    """The tuples of a window, in the order in which they came.

    They are read from the bolt's state on demand: `get` returns all at once, iteration reads slice by slice. So a
    window may be larger than memory. It is valid while the bolt evaluates it.

    Args:
        queue: with the tuples.
        activation: which of them.

    Example:
        >>> from storm_on_spark.testing import BoltTester, make_tuple
        >>> from storm_on_spark.windowing import BaseWindowedBolt, Count
        >>> class Show(BaseWindowedBolt):
        ...     def execute(self, window):
        ...         numbers = [[tup[0] for tup in part] for part in (window.get(), window.new, window.expired)]
        ...         print(*numbers)
        >>> tester = BoltTester(Show().with_window(Count(3), Count(2)))
        >>> tester.execute(*(make_tuple([number]) for number in range(6)))
        [0, 1] [0, 1] []
        [1, 2, 3] [2, 3] [0]
        [3, 4, 5] [4, 5] [1, 2]
    """

    def __init__(self, queue: EventQueue, activation: Activation) -> None:
        self._queue, self._activation = queue, activation
        self._all: list[Tuple] | None = None

    def get(self) -> list[Tuple]:
        """Returns all tuples of the window."""
        if self._all is None:
            self._all = list(self)
        return list(self._all)

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self._all) if self._all is not None else self._tuples(self._activation.window)

    def __len__(self) -> int:
        return sum(part.size for part in self._activation.window)

    @property
    def new(self) -> list[Tuple]:
        """The tuples that were not in the previous window."""
        return list(self._tuples(self._new_parts()))

    @property
    def expired(self) -> list[Tuple]:
        """The tuples that have left the window since the previous one."""
        return list(self._tuples(self._activation.expired))

    @property
    def start(self) -> int | None:
        """The time after which the window begins, in ms; None if its length is a number of tuples."""
        return self._activation.start

    @property
    def end(self) -> int | None:
        """The time up to which the window holds tuples, in ms; None if neither length nor slide is a time.

        By the tuples' timestamps, if they have any, or else by `TopologyContext.time_ms`.
        """
        return self._activation.end

    @property
    def anchors(self) -> JointAnchors | None:
        """The anchors of an emit: all tuples of the window; None if none of them is tracked."""
        tracked = [part for part in self._activation.window if part.slice.tracked]
        return JointAnchors(_Again(self, tracked)) if tracked else None

    def tuples_of(self, parts: Iterable[Part]) -> Iterator[Tuple]:
        """Yields tuples."""
        return self._tuples(parts)

    def _tuples(self, parts: Iterable[Part]) -> Iterator[Tuple]:
        for part in parts:
            yield from self._queue.tuples(part)

    def _new_parts(self) -> Iterator[Part]:
        previous = self._activation.previous
        for part in self._activation.window:
            if previous.held_all(part.slice):
                continue
            sequence, stamps = self._queue.marks(part.slice)
            places = range(part.slice.size) if part.places is None else part.places
            new = [place for place in places if not previous.held(sequence[place], stamps[place])]
            yield Part(part.slice, new)

    # --- Storm's names ---------------------------------------------------------------------------------------------

    def get_iter(self) -> Iterator[Tuple]:
        """Returns an iterator over the tuples of the window."""
        return iter(self)

    def get_new(self) -> list[Tuple]:
        """Returns `new`."""
        return self.new

    def get_expired(self) -> list[Tuple]:
        """Returns `expired`."""
        return self.expired

    def get_start_timestamp(self) -> int | None:
        """Returns `start`."""
        return self.start

    def get_end_timestamp(self) -> int | None:
        """Returns `end`."""
        return self.end

    def __repr__(self) -> str:
        span = "" if self.start is None else f" of ({self.start}, {self.end}] ms"
        return f"<TupleWindow{span} with {len(self)} tuples>"


class _Again:
    """Tuples of a window; they can be iterated over more than once."""

    def __init__(self, window: TupleWindow, parts: list[Part]) -> None:
        self._window, self._parts = window, parts

    def __iter__(self) -> Iterator[Tuple]:
        return self._window.tuples_of(self._parts)
