"""How long a bolt's tuples take, and the counters of an execution by stream.

Every tuple counts. Where `execute` takes 20 µs or more, each call is timed, which costs below 2 % of that. Where it
takes less, the tuples of a chunk count with their mean: a clock that is read twice for each would cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Final

import numpy as np

from storm_on_spark.api.tuple import Delivery
from storm_on_spark.metrics import amounts as names
from storm_on_spark.metrics.amounts import Name
from storm_on_spark.metrics.latency import bin_of, bins_of
from storm_on_spark.runtime.bolts.collectors import Ledger
from storm_on_spark.runtime.bolts.inputs import Input

_SLOW_SECS: Final = 20e-6

Source = tuple[str, str]
"""A component and a stream of it."""


class Durations:
    """Times the executions of one task."""

    def __init__(self) -> None:
        #: Seconds of each call, while each is timed.
        self._calls: list[float] = []
        #: Of each delivery of this execution: where from, how many tuples, seconds, and calls that were timed before.
        self._parts: list[tuple[Source, int, float, int]] = []
        self._slow = False

    @property
    def calls(self) -> list[float]:
        """Seconds of each call of this execution, if each was timed."""
        return self._calls

    def begin(self) -> None:
        """Starts an execution."""
        self._calls.clear()
        self._parts.clear()

    def mark(self) -> tuple[int, int]:
        """Returns how many deliveries and calls were timed, for `truncate`."""
        return len(self._parts), len(self._calls)

    def truncate(self, mark: tuple[int, int]) -> None:
        """Forgets deliveries whose execution is undone."""
        del self._parts[mark[0] :]
        del self._calls[mark[1] :]

    def each(self, execute: Callable[..., None]) -> Callable[..., None]:
        """Returns `execute` itself, or what also times each call."""
        if not self._slow:
            return execute
        took = self._calls.append

        def timed(*args: Any) -> None:
            began = perf_counter()
            try:
                execute(*args)
            finally:
                took(perf_counter() - began)

        return timed

    def timed(self, parts: Any) -> Iterator[tuple[Delivery, int, Any]]:
        """Yields deliveries as they are, and times what is done with each."""
        for delivery, first, rows in parts:
            calls = len(self._calls)
            began = perf_counter()
            yield delivery, first, rows
            self._parts.append(((delivery.component, delivery.stream), len(rows), perf_counter() - began, calls))

    def took(self, delivery: Delivery, rows: int, seconds: float) -> None:
        """Notes how long a delivery took that was executed as a whole."""
        self._parts.append(((delivery.component, delivery.stream), rows, seconds, len(self._calls)))

    def amounts(self, inputs: Sequence[Input], ledger: Ledger, *, all_acked: bool) -> dict[Name, int]:
        """Returns the counters of this execution, and decides how the next one is timed.

        Args:
            inputs: all that was executed.
            ledger: of the execution, before it is closed.
            all_acked: whether all tuples are acked that did not fail.
        """
        if len(self._parts) == 1 == len(inputs) and not (self._calls or ledger.failed or ledger.acked_held):
            ((source, rows, seconds, _),) = self._parts
            acked = rows if all_acked else len(ledger.acked)
            if rows and acked and not ledger.failed_held:
                return self._of_one(source, rows, seconds, acked)
        found: dict[Name, int] = {}
        spent = executed = 0.0
        for number, (source, rows, seconds, calls) in enumerate(self._parts):
            spent, executed = spent + seconds, executed + rows
            if not rows:
                continue
            _count(found, (names.EXECUTE_NS, *source), round(seconds * 1e9))
            end = self._parts[number + 1][3] if number + 1 < len(self._parts) else len(self._calls)
            if end - calls == rows and rows > 1:
                for key, count in bins_of(1e3 * np.array(self._calls[calls:end])).items():
                    _count(found, (names.EXECUTE_BIN, key, ""), count)
            else:
                _count(found, (names.EXECUTE_BIN, bin_of(1e3 * seconds / rows), ""), rows)
        self._slow = executed > 0 and spent / executed >= _SLOW_SECS
        _settled(found, inputs, ledger, all_acked)
        return found

    def _of_one(self, source: Source, rows: int, seconds: float, acked: int) -> dict[Name, int]:
        """Returns the same for one delivery that was timed as a whole: half of a round's counting in real time."""
        self._slow = seconds / rows >= _SLOW_SECS
        spent, at = round(seconds * 1e9), bin_of(1e3 * seconds / rows)
        found: dict[Name, int] = {
            (names.EXECUTED, *source): rows,
            (names.ACKED, *source): acked,
            (names.EXECUTE_BIN, at, ""): rows,
            (names.PROCESS_BIN, at, ""): acked,
        }
        times = ((names.EXECUTE_NS, spent), (names.PROCESS_NS, round(spent / rows * acked)))
        found.update({(name, *source): amount for name, amount in times if amount})
        return found


def _count(found: dict[Name, int], key: Name, amount: int) -> None:
    if amount:
        found[key] = found.get(key, 0) + amount


def _settled(found: dict[Name, int], inputs: Sequence[Input], ledger: Ledger, all_acked: bool) -> None:
    """Adds what was executed, acked and failed, by stream, and latencies up to the ack.

    A tuple that is acked in the execution in which it came counts as acked when it was executed.
    """
    ends: list[int] = []
    sizes: dict[Source, int] = {}
    for delivery, _, size in inputs:
        source = delivery.component, delivery.stream
        sizes[source] = sizes.get(source, 0) + size
        ends.append(delivery.offset + size)
    failed = _by_source(inputs, sizes, ends, ledger.failed)
    if all_acked:
        acked = {source: size - failed.get(source, 0) for source, size in sizes.items()}
    else:
        acked = _by_source(inputs, sizes, ends, ledger.acked)
    at_once = sum(acked.values())
    for source, size in sizes.items():
        _count(found, (names.EXECUTED, *source), size)
        _count(found, (names.ACKED, *source), acked.get(source, 0))
        _count(found, (names.FAILED, *source), failed.get(source, 0))
        mean = found.get((names.EXECUTE_NS, *source), 0) / size if size else 0.0
        _count(found, (names.PROCESS_NS, *source), round(mean * acked.get(source, 0)))
    _process_bins(found, at_once, sum(sizes.values()))
    waited: dict[Source, list[float]] = {}
    for held in ledger.acked_held:
        waited.setdefault(held.source, []).append(held.seconds)
    for source, seconds in waited.items():
        _count(found, (names.ACKED, *source), len(seconds))
        _count(found, (names.PROCESS_NS, *source), round(sum(seconds) * 1e9))
        for key, count in bins_of(1e3 * np.array(seconds)).items():
            _count(found, (names.PROCESS_BIN, key, ""), count)
    for held in ledger.failed_held:
        _count(found, (names.FAILED, *held.source), 1)


def _process_bins(found: dict[Name, int], acked: int, executed: int) -> None:
    """Adds the latencies of tuples that were acked at once: their share of each bin of `execute`, in whole tuples."""
    bins = sorted((key[1], n) for key, n in found.items() if key[0] == names.EXECUTE_BIN)
    seen = given = 0
    for key, n in bins:
        seen += n
        share = seen * acked // executed if executed else 0
        _count(found, (names.PROCESS_BIN, key, ""), share - given)
        given = share


def _by_source(
    inputs: Sequence[Input], sizes: dict[Source, int], ends: list[int], positions: Sequence[int]
) -> dict[Source, int]:
    """Returns how many of the positions are tuples of which stream."""
    if not positions or len(sizes) < 2:
        return dict.fromkeys(sizes, len(positions))
    found: dict[Source, int] = {}
    per_delivery = np.bincount(np.searchsorted(ends, positions, side="right"), minlength=len(inputs))
    for (delivery, _, _), count in zip(inputs, per_delivery.tolist(), strict=True):
        source = delivery.component, delivery.stream
        found[source] = found.get(source, 0) + count
    return found
