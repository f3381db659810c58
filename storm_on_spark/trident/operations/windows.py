"""Windows over batches: aggregations of the last N tuples, or of those within some time.

A window continues from batch to batch, in each task. Tuples get into it when their batch is committed, in the order of
batches, so what is in it is exact. Windows that are over are results of the batch in whose commit that is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.streams.operations.processor import Bound, Place, Processor, Store
from storm_on_spark.trident.operations.aggregating import Column
from storm_on_spark.trident.operations.functions import Emitter, Row, View
from storm_on_spark.trident.operations.task import Task, task_of

if TYPE_CHECKING:
    from storm_on_spark.api.task.context import TopologyContext


@dataclass(frozen=True)
class Window(Processor):
    """The results of an aggregation for each window."""

    fields: tuple[str, ...]
    column: Column
    length: int
    """A number of tuples, or milliseconds."""
    slide: int
    timed: bool
    name = "window"
    stateful = True
    gathers = True

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: D102
        prepare = getattr(getattr(self.column.folding, "aggregator", None), "prepare", None)
        if prepare is not None:
            prepare(conf, context)

    def bind(self, place: Place) -> Bound:  # noqa: D102
        (forward,) = place.forward
        rows: list[Row] = place.held.setdefault("rows", [])

        def finish() -> None:
            taken = rows[:]
            rows.clear()
            for row in self._committed(taken, place):
                forward(row)

        return Bound([rows.append], finish)

    def _committed(self, rows: list[Row], place: Place) -> list[Row]:
        """Puts rows into the windows, and returns the results of windows that are over."""
        store, task, txid = place.store, task_of(place), place.batch.txid
        done, made = store.get("committed", (0, []))
        if done >= txid:
            # The batch is committed again, as another task failed in its commit: this one has its rows already.
            return made if done == txid else []
        windows = self._by_time(store, rows, task) if self.timed else self._by_count(store, rows)
        results = [result for window in windows for result in self._aggregate(window, place, task)]
        store.put("committed", (txid, results))
        return results

    def _by_count(self, store: Store, rows: list[Row]) -> Iterator[list[Row]]:
        """Yields the rows of each window that is over: the last `length` after each `slide`."""
        first, count = store.get("bounds", (0, 0))
        for row in rows:
            if count >= first:  # else it is between two windows
                store.put(count, row)
            count += 1
            if count % self.slide == 0:
                start = max(first, count - self.length)
                yield [store.get(number) for number in range(start, count)]
                first = self._drop(store, first, max(first, count + self.slide - self.length))
        store.put("bounds", (first, count))

    def _by_time(self, store: Store, rows: list[Row], task: Task) -> Iterator[list[Row]]:
        """Yields the rows of each window that has ended before now, and then adds rows of now."""
        now = task.time_ms()
        first, count = store.get("bounds", (0, 0))
        end = store.get("end", now - now % self.slide + self.slide)
        while end <= now:
            timed = (store.get(number) for number in range(first, count))
            window = [row for time_ms, row in timed if end - self.length <= time_ms < end]
            if window:
                yield window
            end += self.slide
            while first < count and store.get(first)[0] < end - self.length:
                first = self._drop(store, first, first + 1)
            if first == count:
                # Nothing is left for windows that nobody looked at.
                end = max(end, now - now % self.slide + self.slide)
        for row in rows:
            store.put(count, (now, row))
            count += 1
        store.put("bounds", (first, count))
        store.put("end", end)

    def _drop(self, store: Store, first: int, until: int) -> int:
        for number in range(first, until):
            store.delete(number)
        return until

    def _aggregate(self, window: list[Row], place: Place, task: Task) -> list[Row]:
        found: list[Row] = []
        folding = self.column.folding
        collector = Emitter(found.append, self.column.width, task.report)
        view = View(self.fields, self.column.chosen).of
        accumulator = folding.start(place.batch, collector)
        for row in window:
            accumulator = folding.add(accumulator, view(row), collector)
        folding.end(accumulator, collector)
        return found
