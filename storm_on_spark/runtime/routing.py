"""Choosing the target tasks of a tuple, by the grouping of a subscription.

A picker is a function from a tuple's values to the slots of the boxes that it goes into. Pickers are made once per task
and called once per emitted tuple, so what can be looked up beforehand is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.grouping import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams import GlobalStreamId
from storm_on_spark.runtime.hashing import GOLDEN, MASK, mix64, spread, stable_hash
from storm_on_spark.runtime.key_cache import LIMIT, KeyCache
from storm_on_spark.runtime.wiring import StreamInfo

if TYPE_CHECKING:
    from storm_on_spark.runtime.output import Outbox

Values = tuple[Any, ...]

Slot = tuple[Callable[[Values], None], Callable[[Any], None], int]
"""What an emit to one box needs: append values, append anchor, the target task."""

Slots = tuple[Slot, ...]

Picker = Callable[[Values], Slots]

_LONGEST_KEY = 256
"""A longer text is worked out anew each time, so that the cache's memory is bounded."""


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
        self.slots: list[Slots] = [(box.slot,) for box in self.boxes]
        #: Called with a seed: from there on, the same seed and the same tuples in the boxes give the same choices.
        self.reset: Callable[[int], None] | None = None
        #: Whether each tuple goes to exactly one task.
        self.single = not isinstance(grouping, (AllGrouping, CustomGrouping))
        #: What a fields grouping has looked up, as positions of boxes.
        self.owners: _Owners | None = None
        #: Where tuples of one value are grouped by it: by text its slot, and the text as one object.
        self.texts: dict[str, tuple[Any, ...]] | None = None
        #: In the same case, slots by key; once it is full, an `int` is not looked for any more.
        self.known: _Known | None = None
        #: Picks for a tuple of this one value; may raise TypeError where `pick` raises TupleError.
        self.pick_value: Callable[[Any], Slots] = lambda value: self.pick((value,))
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
    everyone = tuple(box.slot for box in router.boxes)
    return lambda values: everyone


def _lowest(router: Router) -> Picker:
    lowest = router.slots[0]
    return lambda values: lowest


def _in_turn(router: Router) -> Picker:
    # Local-or-shuffle too: every task of a fused consumer is local, and behind an exchange none is nearer than another.
    slots = router.slots
    turn: Iterator[Slots] = cycle(slots)

    def reset(seed: int) -> None:
        nonlocal turn
        turn = islice(cycle(slots), (seed + sum(box.count() for box in router.boxes)) % len(slots), None)

    def pick(values: Any) -> Slots:
        return next(turn)

    router.reset = reset
    router.pick_value = pick
    return pick


class _Known(KeyCache):
    """Slots by key. Equal keys have equal hashes, so what was worked out once can be kept by key."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router
        self._slots = router.slots
        self._count = len(self._slots)
        self.single = len(router.positions()) == 1

    def __missing__(self, key: Any) -> Slots:
        if key.__class__ is int:
            chosen = self.of_int(key)
            if len(self) < LIMIT:
                self[key] = chosen
            return chosen
        chosen = self.choose(key)
        if not isinstance(key, (str, bytes)) or len(key) <= _LONGEST_KEY:
            self.keep(key, chosen)
        return chosen

    def of_int(self, key: int) -> Slots:
        """Works out the slots for an `int`: as `choose`, in a fifth of the time.

        That is less than it takes to store the key, or to look in vain for it among 65,536.
        """
        if 0 <= key < 1 << 32:
            # `spread` of a number whose upper half is empty.
            product = key * GOLDEN & MASK
            return self._slots[(product ^ (product >> 32)) % self._count]
        return self._slots[spread(hash(key)) % self._count]

    def choose(self, key: Any) -> Slots:
        """Works out the slots for a key.

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
        return self._slots[hashed % len(self._slots)]

    def pick(self, key: Any) -> Slots:
        """Returns the slots for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        try:
            found: Slots = self[key]
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
        if not isinstance(key, (str, bytes)) or len(key) <= _LONGEST_KEY:
            self.keep(key, position)
        return position

    def choose(self, key: Any) -> int:
        """Works out the position for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        ((_, _, task),) = self._known.choose(key)
        return self._position[task]


class _Texts(KeyCache):
    """Slots by text, each with the text itself, so that equal ones can be the same object."""

    def __init__(self, known: _Known) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, text: str) -> tuple[Any, ...]:
        (slot,) = self._known.choose(text)
        known = (*slot, text)
        if len(text) <= _LONGEST_KEY:
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
    slots, positions = router.slots, router.positions()
    count = len(slots)
    used = [0] * count

    def reset(seed: int) -> None:
        used[:] = [box.count() for box in router.boxes]

    def pick(values: Values) -> Slots:
        hashed = router.hash_of([values[position] for position in positions])
        first = hashed % count
        # The second candidate differs from the first whenever there are two tasks.
        second = (first + 1 + mix64(hashed) % (count - 1)) % count if count > 1 else first
        chosen = first if used[first] <= used[second] else second
        used[chosen] += 1
        return slots[chosen]

    router.reset = reset
    return pick


def _custom(router: Router) -> Picker:
    assert isinstance(router.grouping, CustomGrouping)
    info, task = router.info, router.context.this_task_id
    by_task = {box.target: box.slot for box in router.boxes}
    # Every task has its own copy, as if the grouping had been shipped to it.
    chooser = copy.deepcopy(router.grouping.grouping)
    where = f'the custom grouping {type(chooser).__name__} of stream "{info.stream}" from "{info.component}"'
    try:
        chooser.prepare(router.context, GlobalStreamId(info.component, info.stream), list(by_task))
    except Exception as error:
        raise TupleError(f"{where} raised in prepare: {type(error).__name__}: {error}") from error

    def pick(values: Values) -> Slots:
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
"""How each grouping chooses. A direct grouping chooses nothing: the producer names the task."""

assert DirectGrouping not in _PICKERS
