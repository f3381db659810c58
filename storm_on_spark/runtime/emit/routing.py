"""Choosing the target tasks of a tuple, by the grouping of a subscription.

A picker is a function from a tuple's values to the destinations of the boxes that it goes into. A picker is made once
per task and called for each emitted tuple, so everything that can be is looked up when it is made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.custom_grouping import CustomGrouping
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.runtime.emit.box import Destination, Outbox
from storm_on_spark.runtime.emit.key_cache import LIMIT, LONGEST, KeyCache
from storm_on_spark.runtime.run.wiring import StreamInfo
from storm_on_spark.runtime.values.hashing import GOLDEN, MASK, mix64, spread, stable_hash

Values = tuple[Any, ...]

Destinations = tuple[Destination, ...]

Picker = Callable[[Values], Destinations]

_LARGE = 1 << 8 * LONGEST
"""The least integer that is not cached."""


class Router:
    """The choice among the boxes of one subscription.

    Args:
        context: of the emitting task.
        info: the stream.
        grouping: how it is shared out; not a direct grouping.
        boxes: one for each target task.

    Raises:
        TupleError: a custom grouping raised in `prepare`.
    """

    def __init__(self, context: TopologyContext, info: StreamInfo, grouping: Grouping, boxes: Sequence[Outbox]) -> None:
        self.context = context
        self.info = info
        self.grouping = grouping
        #: By task id, ascending, as Storm counts them.
        self.boxes = sorted(boxes, key=lambda box: box.target)
        self.destinations: list[Destinations] = [(box.destination,) for box in self.boxes]
        #: Called with a seed: from there on, the same seed and the same tuples in the boxes give the same choices.
        self.reset: Callable[[int], None] | None = None
        #: Whether each tuple goes to exactly one task.
        self.single = not isinstance(grouping, (AllGrouping, CustomGrouping))
        #: The look-ups of a fields grouping, as positions of boxes.
        self.owners: _Owners | None = None
        #: Where tuples of one value are grouped by it: by text its destination, and the text as one object.
        self.texts: dict[str, tuple[Any, ...]] | None = None
        #: In the same case, destinations by key; once it is full, an `int` is not looked for any more.
        self.known: _Known | None = None
        #: Picks for a tuple of this one value; may raise TypeError where `pick` raises TupleError.
        self.pick_value: Callable[[Any], Destinations] = lambda value: self.pick((value,))
        self.pick: Picker = _PICKERS[type(grouping)](self)

    def hash_of(self, keys: Sequence[Any]) -> int:
        """Returns the stable hash of the values of the fields that the grouping names.

        Raises:
            TupleError: one of them has none; the message names its field.
        """
        assert isinstance(self.grouping, (FieldsGrouping, PartialKeyGrouping))
        hashes = []
        for name, key in zip(self.grouping.fields, keys, strict=True):
            try:
                hashes.append(stable_hash(key))
            except TypeError as error:
                raise TupleError(
                    f'"{self.info.component}" (task {self.context.this_task_id}) emitted a value for field '
                    f'"{name}" of stream "{self.info.stream}" that can\'t be grouped by: '
                    f"{error} (given {key!r:.100})"
                ) from None
        return hashes[0] if len(hashes) == 1 else stable_hash(tuple(hashes))

    def positions(self) -> list[int]:
        """Returns the positions of the fields that the grouping names."""
        assert isinstance(self.grouping, (FieldsGrouping, PartialKeyGrouping))
        return [self.info.fields.index(name) for name in self.grouping.fields]


def _everyone(router: Router) -> Picker:
    everyone = tuple(box.destination for box in router.boxes)
    return lambda values: everyone


def _lowest(router: Router) -> Picker:
    lowest = router.destinations[0]
    return lambda values: lowest


def _in_turn(router: Router) -> Picker:
    # Local-or-shuffle too: every task of a fused consumer is local, and behind an exchange none is nearer than another.
    destinations = router.destinations
    turn: Iterator[Destinations] = cycle(destinations)

    def reset(seed: int) -> None:
        nonlocal turn
        turn = islice(cycle(destinations), (seed + sum(box.count() for box in router.boxes)) % len(destinations), None)

    def pick(values: Any) -> Destinations:
        return next(turn)

    router.reset = reset
    router.pick_value = pick
    return pick


class _Known(KeyCache):
    """Destinations by key, cached: equal keys have equal hashes."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router
        self._destinations = router.destinations
        self._count = len(self._destinations)
        self.single = len(router.positions()) == 1

    def __missing__(self, key: Any) -> Destinations:
        if key.__class__ is int:
            chosen = self.of_int(key)
            if len(self) < LIMIT and -_LARGE < key < _LARGE:
                self[key] = chosen
            return chosen
        chosen = self.choose(key)
        self.keep(key, chosen)
        return chosen

    def of_int(self, key: int) -> Destinations:
        """Computes the destinations for an `int`, as `choose` but faster than a failed look-up in the full cache."""
        if 0 <= key < 1 << 32:
            # `spread` of a number whose upper half is empty.
            product = key * GOLDEN & MASK
            return self._destinations[(product ^ (product >> 32)) % self._count]
        return self._destinations[spread(hash(key)) % self._count]

    def choose(self, key: Any) -> Destinations:
        """Computes the destinations for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        # Task index = hash mod number of tasks, over task ids in ascending order, as in Storm's TupleUtils.
        if not self.single:
            hashed = self._router.hash_of(key)
        else:
            try:
                hashed = stable_hash(key)
            except TypeError:
                hashed = self._router.hash_of((key,))  # which says of which field the key is
        return self._destinations[hashed % len(self._destinations)]

    def pick(self, key: Any) -> Destinations:
        """Returns the destinations for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        try:
            found: Destinations = self[key]
        except TypeError:
            return self.choose(key)  # which says what is wrong with a key that has no hash
        return found


class _Owners(KeyCache):
    """Positions of boxes by key."""

    def __init__(self, router: Router, known: _Known) -> None:
        super().__init__()
        self._known = known
        self._position = {box.target: position for position, box in enumerate(router.boxes)}

    def __missing__(self, key: Any) -> int:
        position = self.choose(key)
        self.keep(key, position)
        return position

    def choose(self, key: Any) -> int:
        """Computes the position for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        ((_, _, task),) = self._known.choose(key)
        return self._position[task]


class _Texts(KeyCache):
    """Destinations by text, each with the text itself, so that equal ones can be the same object."""

    def __init__(self, known: _Known) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, text: str) -> tuple[Any, ...]:
        (destination,) = self._known.choose(text)
        known = (*destination, text)
        self.keep(text, known)
        return known


def _by_fields(router: Router) -> Picker:
    known, positions = _Known(router), router.positions()
    router.owners = _Owners(router, known)
    pick = known.pick
    if len(positions) > 1:
        return lambda values: pick(tuple([values[position] for position in positions]))
    (only,) = positions
    if len(router.info.fields) == 1:
        router.pick_value = known.__getitem__
        router.texts = _Texts(known)
        router.known = known
    return lambda values: pick(values[only])


def _by_partial_key(router: Router) -> Picker:
    """Two candidate tasks a key, the one this sender has used less ("the power of both choices", Nasir et al. 2015)."""
    destinations, positions = router.destinations, router.positions()
    count = len(destinations)
    used = [0] * count

    def reset(seed: int) -> None:
        used[:] = [box.count() for box in router.boxes]

    def pick(values: Values) -> Destinations:
        hashed = router.hash_of([values[position] for position in positions])
        first = hashed % count
        # The second candidate differs from the first whenever there are two tasks.
        second = (first + 1 + mix64(hashed) % (count - 1)) % count if count > 1 else first
        chosen = first if used[first] <= used[second] else second
        used[chosen] += 1
        return destinations[chosen]

    router.reset = reset
    return pick


def _custom(router: Router) -> Picker:
    assert isinstance(router.grouping, CustomGrouping)
    info, task = router.info, router.context.this_task_id
    by_task = {box.target: box.destination for box in router.boxes}
    # Every task has its own copy, as if the grouping had been shipped to it.
    chooser = copy.deepcopy(router.grouping.grouping)
    where = f'the custom grouping {type(chooser).__name__} of stream "{info.stream}" from "{info.component}"'
    try:
        chooser.prepare(router.context, GlobalStreamId(info.component, info.stream), list(by_task))
    except Exception as error:
        raise TupleError(f"{where} raised in prepare: {type(error).__name__}: {error}") from error

    def pick(values: Values) -> Destinations:
        try:
            tasks = list(chooser.choose_tasks(task, list(values)))
        except Exception as error:
            raise TupleError(f"{where} raised in choose_tasks: {type(error).__name__}: {error}") from error
        try:
            return tuple([by_task[chosen] for chosen in tasks])
        except (KeyError, TypeError):
            raise TupleError(f"{where} chose {tasks!r}; valid tasks are {list(by_task)}") from None

    return pick


_PICKERS: dict[type[Grouping], Callable[[Router], Picker]] = {
    AllGrouping: _everyone,
    GlobalGrouping: _lowest,
    ShuffleGrouping: _in_turn,
    NoneGrouping: _in_turn,
    LocalOrShuffleGrouping: _in_turn,
    FieldsGrouping: _by_fields,
    PartialKeyGrouping: _by_partial_key,
    CustomGrouping: _custom,
}
"""The router of each grouping. A direct grouping has none: the emitting component names the task."""

assert DirectGrouping not in _PICKERS
