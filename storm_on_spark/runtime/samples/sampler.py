"""The sampler of a process: takes samples of what its tasks do, and puts them where the driver finds them.

A message is sampled or not by its number, so each component samples the same messages, and their trees are whole. What
belongs to no message is sampled by chance. Tuples that failed are always among the samples of a component that has any.

While nothing is sampled, an execution pays for one comparison of times.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from storm_on_spark.runtime.processes.diagnostics import log_levels
from storm_on_spark.runtime.reports.shown_values import ids_text, values_text
from storm_on_spark.runtime.samples.events import TupleEvent, encoded
from storm_on_spark.runtime.samples.switch import ALL, FOLDER, read_switch
from storm_on_spark.runtime.storage import Folder, as_storage, inside
from storm_on_spark.runtime.values.batches import to_rows

MOST_FILES: Final = 8
"""The limit of each process, so that samples stay bounded while they are not read."""
MOST_AT_ONCE: Final = 20
"""Samples of one kind from one execution or cut."""
MOST_A_FLUSH: Final = 100
_FLUSH_SECS: Final = 0.25
_LOOK_SECS: Final = 1.0
_LOOK_STORE_SECS: Final = 5.0
_OUTCOMES: Final = {0: "acked", 1: "failed", 2: "timed out"}
"""By the acker's codes."""
_SPREAD: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def is_chosen(root: int, percent: float) -> bool:
    """Returns whether a message is among the sampled ones; every process says the same.

    Example:
        >>> round(sum(is_chosen(root, 10.0) for root in range(1, 100_001)) / 1000)
        10
    """
    return (root * _SPREAD & _MASK) >> 40 & 0xFFFFFF < percent / 100 * 0x1000000


class Ends(Protocol):
    """A spout's task."""

    component: str
    task: int


class Sampler:
    """Takes the samples of one process of a run.

    Args:
        open_folder: returns the topology's own folder in the checkpoint; None where there is none, and no samples.
        now: seconds since the epoch.
    """

    def __init__(self, open_folder: Callable[[], Folder | None], now: Callable[[], float] = time.time) -> None:
        self._open_folder = open_folder
        self._now = now
        self._folder: Folder | None = None
        #: What is sampled; empty while nothing is.
        self.rates: dict[str, float] = {}
        #: When to look at that again, by `time.perf_counter`.
        self.look_at = 0.0
        self._every = _LOOK_SECS
        self._lock = threading.Lock()
        self._waiting: list[TupleEvent] = []
        self._timer: threading.Timer | None = None
        self._own = secrets.token_hex(6)
        self._files = itertools.count()
        self._runs = itertools.count()

    def is_on(self, now: float) -> bool:
        """Returns whether anything is sampled; `now` is of `time.perf_counter`."""
        if now >= self.look_at:
            self.look(now)
        return bool(self.rates)

    def look(self, now: float) -> None:
        """Looks whether and what is to be sampled, and which levels loggers are to have.

        Args:
            now: of `time.perf_counter`.
        """
        if self._folder is None:
            self._folder = self._open_folder()
            if self._folder is None:
                self.look_at = float("inf")
                return
            self._every = _LOOK_SECS if isinstance(self._folder, Path) else _LOOK_STORE_SECS
        self.rates, levels = read_switch(self._folder)
        log_levels.learn(levels)
        self.look_at = now + self._every

    def percent(self, component: str) -> float:
        """Returns which share of a component's tuples is sampled; 0 while there is no room for further samples."""
        if len(self._waiting) >= MOST_A_FLUSH:
            return 0.0
        return self.rates.get(component, self.rates.get(ALL, 0.0))

    # What tasks do.

    def executed(
        self,
        component: str,
        task: int,
        inputs: Sequence[Any],
        lineage: Any,
        outcomes: tuple[Sequence[int] | None, Sequence[int], Sequence[int]],
        sealed: Iterable[Any],
        spent: tuple[float, Sequence[float]],
    ) -> None:
        """Takes samples of an execution of a bolt's task, which has just ended.

        Args:
            component: the bolt.
            task: its task.
            inputs: what it got.
            lineage: of that, as an `InputLineage`.
            outcomes: positions that were acked (None for all others), that failed, and at which it raised.
            sealed: what it emitted.
            spent: seconds of the whole execution, and of each call where each was timed.
        """
        percent = self.percent(component)
        if not percent or not lineage.size:
            return
        size, roots, edges = lineage.size, lineage.roots, lineage.edges
        acked, failed, raised = outcomes
        secs, calls = spent
        began, run = self._now() - secs, f"{self._own}-{next(self._runs)}"
        bad = [*raised, *failed]
        wanted = sorted(dict.fromkeys([*bad[:MOST_AT_ONCE], *_chosen(roots, size, percent)]))
        is_acked, is_bad, has_raised = (None if acked is None else set(acked)), set(bad), set(raised)
        starts = np.concatenate([[0.0], np.cumsum(calls)]) if len(calls) == size else None
        found: list[TupleEvent] = []
        taken = 0
        for part in inputs:
            delivery, rows, first = part.delivery, part.rows, part.delivery.offset
            for position in wanted:
                if not first <= position < first + part.size or taken >= MOST_AT_ONCE:
                    continue
                taken += 1
                if position in is_bad:
                    outcome = "raised" if position in has_raised else "failed"
                else:
                    outcome = "acked" if is_acked is None or position in is_acked else "open"
                mean = secs / size
                found.append(
                    TupleEvent(
                        began + (position * mean if starts is None else float(starts[position])),
                        "execute",
                        component,
                        task,
                        delivery.stream,
                        delivery.component,
                        delivery.task,
                        _names(roots[position] if position < len(roots) - 1 else 0),
                        _name(int(edges[position])),
                        _values(rows, position - first, delivery.fields),
                        "",
                        mean if starts is None else float(calls[position]),
                        outcome,
                        run,
                    )
                )
        for each in sealed:
            if each.box.target >= 0:
                found += self._emitted(component, task, each, percent, began + secs, run)
        self._add(found)

    def emitted(
        self,
        component: str,
        task: int,
        sealed: Any,
        begin: int,
        messages: tuple[Sequence[Any], Sequence[float], float],
    ) -> None:
        """Takes samples of what a spout's task has emitted, from one box.

        Args:
            component: the spout.
            task: its task.
            sealed: the box.
            begin: the root of the first message since the last cut.
            messages: ids of the messages since then, when they were emitted, and the present time of the same clock.
        """
        percent = self.percent(component)
        if not percent:
            return
        ids, times, now = messages
        wall, run = self._now(), f"{self._own}-{next(self._runs)}"
        found = []
        for event in self._emitted(component, task, sealed, percent, wall, run):
            place = int(event.roots[0], 16) - begin if event.roots else -1
            if 0 <= place < len(ids):
                event = event._replace(message_id=_id(ids[place]), time=wall - max(0.0, now - times[place]))
            found.append(event)
        self._add(found)

    def ended(
        self, spout: Ends, roots: Iterable[int], ids: Iterable[Any], codes: Iterable[int], secs: Iterable[float]
    ) -> None:
        """Takes samples of messages that have ended.

        Args:
            spout: their task.
            roots: of the messages.
            ids: theirs.
            codes: what became of them, as the acker says it.
            secs: how long they took.
        """
        percent = self.percent(spout.component)
        if not percent:
            return
        found: list[TupleEvent] = []
        now = self._now()
        for root, message_id, code, took in zip(roots, ids, codes, secs, strict=True):
            if (code or is_chosen(int(root), percent)) and len(found) < MOST_AT_ONCE:
                end = TupleEvent(now, "end", spout.component, spout.task, roots=(_name(int(root)),), secs=float(took))
                given = "" if message_id is None else _id(message_id)
                found.append(end._replace(message_id=given, outcome=_OUTCOMES.get(int(code), "failed")))
        self._add(found)

    def _emitted(self, component: str, task: int, sealed: Any, percent: float, at: float, run: str) -> list[TupleEvent]:
        stream, roots, values = sealed.box.stream, sealed.roots, sealed.values
        size = values.num_rows if isinstance(values, pa.RecordBatch) else len(values)
        wanted = _chosen([0] * (size + 1) if roots is None else roots, size, percent)
        edges = None if sealed.edges is None else sealed.edges.ids()
        return [
            TupleEvent(
                at,
                "emit",
                component,
                task,
                stream.stream,
                "",
                sealed.box.target,
                () if roots is None else _names(roots[place]),
                "" if edges is None else _name(int(edges[place])),
                _values(values, place, stream.fields),
                run=run,
            )
            for place in wanted
        ]

    # Where samples go.

    def _add(self, events: list[TupleEvent]) -> None:
        if not events:
            return
        with self._lock:
            room = MOST_A_FLUSH - len(self._waiting)
            self._waiting += events[:room]
            if self._timer is None:
                self._timer = threading.Timer(_FLUSH_SECS, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Puts what has gathered where the driver finds it."""
        with self._lock:
            events, self._waiting, self._timer = self._waiting, [], None
        folder = self._folder
        # A run that has ended has removed its folder, which must not be created again.
        if events and folder is not None and not (isinstance(folder, Path) and not folder.is_dir()):
            name = f"{self._own}-{next(self._files) % MOST_FILES}"
            with contextlib.suppress(OSError):  # the disk is full, or the topology is gone: others say so
                as_storage(inside(folder, FOLDER)).put(name, encoded(events))


def _chosen(roots: Any, size: int, percent: float) -> list[int]:
    """Returns which of the first `size` tuples are sampled, a few at most."""
    if percent >= 100:
        return list(range(min(size, MOST_AT_ONCE)))
    found = []
    if isinstance(roots, np.ndarray) and len(roots) >= size and size:
        part = roots[:size]
        spread = (part * np.uint64(_SPREAD)) >> np.uint64(40) & np.uint64(0xFFFFFF)
        anchored = (spread < percent / 100 * 0x1000000) & (part != 0)
        by_chance = (part == 0) & (np.random.default_rng().random(size) < percent / 100)
        return [int(place) for place in np.flatnonzero(anchored | by_chance)[:MOST_AT_ONCE]]
    for place in range(size):
        root = roots[place] if place < len(roots) else 0
        each = root if isinstance(root, tuple) else (root,)
        if any(is_chosen(int(one), percent) for one in each if one) or (
            not any(each) and random.random() < percent / 100  # it decides nothing but this
        ):
            found.append(place)
            if len(found) >= MOST_AT_ONCE:
                break
    return found


def _names(root: Any) -> tuple[str, ...]:
    return tuple(_name(int(one)) for one in (root if isinstance(root, tuple) else (root,)) if one)[:8]


def _name(number: int) -> str:
    return f"{number:x}" if number else ""


def _id(message_id: Any) -> str:
    if isinstance(message_id, pa.Scalar):
        message_id = message_id.as_py()
    return ids_text(message_id).removeprefix("message id ")


def _values(rows: Any, place: int, fields: Iterable[str]) -> str:
    if isinstance(rows, pa.RecordBatch):
        return values_text(next(iter(to_rows(rows.slice(place, 1)))), rows.schema.names)
    return values_text(rows[place], fields)


NO_SAMPLES: Final = Sampler(lambda: None)
"""Takes none."""
