"""Choosing the target tasks of a tuple, by the grouping of a subscription.

Most groupings choose one box for a tuple: a `Chooser` returns its destination. A picker returns those of all boxes that
a tuple goes into. Both are made once per task and called for each emitted tuple, so everything that can be is looked up
when they are made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from storm_on_spark.api.custom_grouping import CustomGrouping
from storm_on_spark.api.errors import TupleError
from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    KeyedGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.streams.stream import GlobalStreamId
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.runtime.emit.box import Destination, Outbox
from storm_on_spark.runtime.emit.key_cache import LIMIT, LONGEST, KeyCache
from storm_on_spark.runtime.run.wiring import StreamInfo
from storm_on_spark.runtime.values.hashing import GOLDEN, MASK, mix64, spread, stable_hash

Values = tuple[Any, ...]

Chooser = Callable[[Values], Destination]

Picker = Callable[[Values], Sequence[Destination]]

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
        self.destinations: list[Destination] = [box.destination for box in self.boxes]
        #: Called with a seed: from there on, the same seed and the same tuples in the boxes give the same choices.
        self.reset: Callable[[int], None] | None = None
        #: The destinations by key of a fields grouping.
        self.owners: Owners | None = None
        #: Chooses the destination of a tuple, where each goes to exactly one task.
        self.choose: Chooser | None = None
        self.pick: Picker
        if isinstance(grouping, AllGrouping):
            self.pick = _everyone(self)
        elif isinstance(grouping, CustomGrouping):
            self.pick = _custom(self)
        else:
            choose = self.choose = _CHOOSERS[type(grouping)](self)
            self.pick = lambda values: (choose(values),)

    def hash_of(self, keys: Sequence[Any]) -> int:
        """Returns the stable hash of the values of the fields that the grouping names.

        Raises:
            TupleError: one of them has none; the message names its field.
        """
        assert isinstance(self.grouping, KeyedGrouping)
        hashes = []
        for name, key in zip(self.grouping.fields, keys, strict=True):
            try:
                hashes.append(stable_hash(key))
            except Exception as error:  # also what a value's own code raises
                raise TupleError(f"{self._blame(name)}: {_reason(error)} (given {_shown(key)})") from None
        return hashes[0] if len(hashes) == 1 else stable_hash(tuple(hashes))

    def unread(self, name: str, error: Exception) -> TupleError:
        """Returns the error for a column that has a value which Python has not."""
        return TupleError(f"{self._blame(name)}: {_reason(error)}")

    def _blame(self, name: str) -> str:
        return (
            f'"{self.info.component}" (task {self.context.this_task_id}) emitted a value for field "{name}" of stream '
            f'"{self.info.stream}" that can\'t be grouped by'
        )

    def positions(self) -> list[int]:
        """Returns the positions of the fields that the grouping names."""
        assert isinstance(self.grouping, KeyedGrouping)
        return [self.info.fields.index(name) for name in self.grouping.fields]


def _reason(error: Exception) -> str:
    """Returns an error in words; those of `stable_hash` say what to do."""
    return str(error) if type(error) is TypeError else f"{type(error).__name__}: {error}"


def _shown(key: object) -> str:
    try:
        return f"{key!r:.100}"
    except Exception as error:
        return f"a {type(key).__name__} whose repr raises {type(error).__name__}"


def _everyone(router: Router) -> Picker:
    everyone = tuple(router.destinations)
    return lambda values: everyone


def _lowest(router: Router) -> Chooser:
    lowest = router.destinations[0]
    return lambda values: lowest


def _in_turn(router: Router) -> Chooser:
    # Local-or-shuffle too: every task of a fused consumer is local, and after an exchange none is nearer than another.
    destinations = router.destinations
    turn: Iterator[Destination] = cycle(destinations)

    def reset(seed: int) -> None:
        nonlocal turn
        turn = islice(cycle(destinations), (seed + sum(box.count() for box in router.boxes)) % len(destinations), None)

    router.reset = reset
    return lambda values: next(turn)


class Owners(KeyCache):
    """Destinations by key of a fields grouping, cached: equal keys have equal hashes.

    A key is the value of the only field that the grouping names, or a tuple of the values. The destination of a text
    has that text, so that equal texts can be one object.
    """

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router
        self._destinations = router.destinations
        self._count = len(self._destinations)
        self._single = len(router.positions()) == 1
        self._places = {box.target: place for place, box in enumerate(router.boxes)}

    def __missing__(self, key: Any) -> Destination:
        if key.__class__ is int:
            chosen = self.of_int(key)
            if len(self) < LIMIT and -_LARGE < key < _LARGE:
                self[key] = chosen
            return chosen
        chosen = self._compute(key)
        if key.__class__ is str:
            chosen = (*chosen[:3], key)
        elif isinstance(key, str):
            return chosen  # equal to a text, but not to be sent in its place
        self.keep(key, chosen)
        return chosen

    def of_int(self, key: int) -> Destination:
        """Computes the destination for an `int`, as `_compute` but faster than a failed look-up in the full cache."""
        if 0 <= key < 1 << 32:
            # `spread` of a number whose upper half is empty.
            product = key * GOLDEN & MASK
            return self._destinations[(product ^ (product >> 32)) % self._count]
        return self._destinations[spread(hash(key)) % self._count]

    def _compute(self, key: Any) -> Destination:
        # Task index = hash mod number of tasks, over task ids in ascending order, as in Storm's TupleUtils.
        if not self._single:
            hashed = self._router.hash_of(key)
        else:
            try:
                hashed = stable_hash(key)
            except Exception:
                hashed = self._router.hash_of((key,))  # which says of which field the key is
        return self._destinations[hashed % self._count]

    def of(self, key: Any) -> Destination:
        """Returns the destination for a key.

        Raises:
            TupleError: it can't be grouped by.
        """
        try:
            found: Destination = self[key]
        except TupleError:
            raise
        except Exception:
            return self._compute(key)  # which says what is wrong with a key that has no hash
        return found

    def places(self, keys: Sequence[Any]) -> list[int]:
        """Returns for each key the place of its box in `Router.boxes`.

        Raises:
            TupleError: one of them can't be grouped by.
        """
        places = self._places
        try:
            found = list(map(self.__getitem__, keys))
        except TupleError:
            raise
        except Exception:
            found = list(map(self.of, keys))  # which says what is wrong with a key that has no hash
        return [places[destination[2]] for destination in found]


def _by_fields(router: Router) -> Chooser:
    """One task for each key, by its hash."""
    owners, positions = Owners(router), router.positions()
    router.owners = owners
    of = owners.of
    if len(positions) > 1:
        return lambda values: of(tuple([values[position] for position in positions]))
    (only,) = positions
    return lambda values: of(values[only])


def _by_partial_key(router: Router) -> Chooser:
    """Two candidate tasks a key, the one this sender has used less ("the power of both choices", Nasir et al. 2015)."""
    destinations, positions = router.destinations, router.positions()
    count = len(destinations)
    used = [0] * count

    def reset(seed: int) -> None:
        used[:] = [box.count() for box in router.boxes]

    def choose(values: Values) -> Destination:
        hashed = router.hash_of([values[position] for position in positions])
        first = hashed % count
        # The second candidate differs from the first whenever there are two tasks.
        second = (first + 1 + mix64(hashed) % (count - 1)) % count if count > 1 else first
        chosen = first if used[first] <= used[second] else second
        used[chosen] += 1
        return destinations[chosen]

    router.reset = reset
    return choose


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

    def pick(values: Values) -> Sequence[Destination]:
        try:
            tasks = list(chooser.choose_tasks(task, list(values)))
        except Exception as error:
            raise TupleError(f"{where} raised in choose_tasks: {type(error).__name__}: {error}") from error
        try:
            return [by_task[chosen] for chosen in tasks]
        except (KeyError, TypeError):
            raise TupleError(f"{where} chose {tasks!r}; valid tasks are {list(by_task)}") from None

    return pick


_CHOOSERS: dict[type[Grouping], Callable[[Router], Chooser]] = {
    GlobalGrouping: _lowest,
    ShuffleGrouping: _in_turn,
    NoneGrouping: _in_turn,
    LocalOrShuffleGrouping: _in_turn,
    FieldsGrouping: _by_fields,
    PartialKeyGrouping: _by_partial_key,
}
"""The groupings that choose one box. A direct grouping has no router: the emitting component names the task."""
