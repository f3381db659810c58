"""Operations on two streams of pairs: joins, and grouping of both by key.

In a window all values of both streams are joined. Outside of windows a value is joined with those of the other stream
that came before it. If there is none, an outer join emits the value at once without a partner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from storm_on_spark.streams.operations.processor import Bound, Consume, Place, Processor, Store


@dataclass(frozen=True)
class Join(Processor):
    """Pairs of the values that have the same key in both streams."""

    joiner: Callable[[Any, Any], Any]
    keeps_left: bool = False
    """Whether a value of the first stream without a partner is joined with None."""
    keeps_right: bool = False
    name = "join"
    stateful = True
    gathers = True
    by_key = True

    def bind(self, place: Place) -> Bound:  # noqa: D102
        return self._in_window(place) if place.windowed else self._at_once(place)

    def _in_window(self, place: Place) -> Bound:
        (forward,), joiner = place.forward, self.joiner
        left: list[Any] = place.held.setdefault("left", [])
        right: dict[Any, list[Any]] = place.held.setdefault("right", {})

        def take_right(pair: Any) -> None:
            key, value = pair
            right.setdefault(key, []).append(value)

        def finish() -> None:
            firsts, seconds = list(left), dict(right)
            left.clear()
            right.clear()
            matched = set()
            for key, value in firsts:
                if key in seconds:
                    matched.add(key)
                    for other in seconds[key]:
                        forward((key, joiner(value, other)))
                elif self.keeps_left:
                    forward((key, joiner(value, None)))
            if self.keeps_right:
                for key, values in seconds.items():
                    if key not in matched:
                        for value in values:
                            forward((key, joiner(None, value)))

        return Bound([left.append, take_right], finish)

    def _at_once(self, place: Place) -> Bound:
        (forward,), joiner, store = place.forward, self.joiner, place.store

        def taker(side: int, keeps: bool, join: Callable[[Any, Any], Any]) -> Consume:
            def take(pair: Any) -> None:
                key, value = pair
                _add(store, side, key, value)
                alone = True
                for other in _rows(store, 1 - side, key):
                    alone = False
                    forward((key, join(value, other)))
                if alone and keeps:
                    forward((key, join(value, None)))

            return take

        return Bound([taker(0, self.keeps_left, joiner), taker(1, self.keeps_right, lambda a, b: joiner(b, a))])


@dataclass(frozen=True)
class CoGroupByKey(Processor):
    """For each key the lists of its values in both streams."""

    name = "co_group_by_key"
    stateful = True
    gathers = True
    by_key = True

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,), store = place.forward, place.store
        if not place.windowed:

            def taker(side: int) -> Consume:
                def take(pair: Any) -> None:
                    key, value = pair
                    _add(store, side, key, value)
                    forward((key, (list(_rows(store, 0, key)), list(_rows(store, 1, key)))))

                return take

            return Bound([taker(0), taker(1)])
        sides: tuple[dict[Any, list[Any]], dict[Any, list[Any]]] = place.held.setdefault("sides", ({}, {}))

        def gatherer(values: dict[Any, list[Any]]) -> Consume:
            return lambda pair: values.setdefault(pair[0], []).append(pair[1])

        def finish() -> None:
            first, second = map(dict, sides)
            for values in sides:
                values.clear()
            for key in {**first, **second}:
                forward((key, (first.get(key, []), second.get(key, []))))

        return Bound([gatherer(values) for values in sides], finish)


def _add(store: Store, side: int, key: Any, value: Any) -> None:
    # One row for each value, so that a micro-batch writes only new values.
    count = store.get((side, key), 0)
    store.put((side, key, count), value)
    store.put((side, key), count + 1)


def _rows(store: Store, side: int, key: Any) -> Iterator[Any]:
    for number in range(store.get((side, key), 0)):
        yield store.get((side, key, number))
