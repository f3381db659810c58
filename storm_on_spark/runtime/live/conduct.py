"""A worker's micro-batch in real time: takes the live process's cut, or executes the log; then hands over the state."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from storm_on_spark.plan.live_homes import processes_of
from storm_on_spark.runtime.batches.input import carried_between
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import Row
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live.execution.rounds import RoundLog, is_before, read_rounds, rounds_of
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt, Cut, Key
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.run.settings import SpoutSettings

log = logging.getLogger(__name__)

NOBODY = -1
"""The task under which the state store has the token of the state."""
_NAME = "live"
BEGINNING = bytes(16)
"""The token of the state before the first micro-batch, which no state store has."""


class Client(Protocol):
    """A worker's requests to the live process; see `LiveClient`."""

    def fetch(self, token: bytes | None, start: Offset, end: Offset) -> Cut | None:
        """Returns what happened between two offsets, if the process continued from the state with this token."""

    def listens(self) -> bool:
        """Returns whether there is a live process."""

    def adopt(self, adopt: Adopt) -> bool:
        """Hands over the state."""

    def start(self, processes: int) -> object:
        """Starts the process, and those that share the tasks with it."""


def micro_batch(
    client: Client,
    worker: Worker,
    run: tuple[str, bytes],
    state_of: Callable[[int], StateAccess],
    values: Callable[[], Mapping[Key, bytes]],
    bounds: tuple[Offset, Offset] | None,
    execute: Callable[[], Iterable[Row]],
    *,
    only_log: bool = True,
) -> Iterator[Row]:
    """Yields the rows of a micro-batch.

    Args:
        client: to the live process.
        worker: this process's instances.
        run: start id and specification.
        state_of: gives the state of a task.
        values: returns the contents of the state store.
        bounds: where the micro-batch begins and ends; None if nothing is in the log, and Spark has read rows.
        execute: executes it from the log.
        only_log: whether all of it is in the log. No live process knows of rows that Spark has read.
    """
    own, key = state_of(NOBODY), worker.wiring.system_key
    if bounds is None:
        # The state is another one than that of any live process, and all rounds come later.
        yield from execute()
        after = os.urandom(16)
        _goes_on(worker, own.get(_NAME) or BEGINNING, after, Offset())
        own.put(_NAME, after)
        return
    start, end = bounds
    token = own.get(_NAME) or (BEGINNING if start == Offset() else None)
    cut = client.fetch(token, start, end) if only_log else None
    if cut is not None:
        _write(cut, state_of)
        own.put(_NAME, cut.token)
        yield from ((key, body) for body in cut.rows)
        return
    again = caught_up(worker, token, values, start, end) if token is not None and only_log else None
    before, token = token, os.urandom(16)
    carried: list[bytes] = []
    more = before is not None and (again is not None or not only_log) and _goes_on(worker, before, token, end)
    if again is not None:
        _write(again, state_of)
        carried = [body for body in again.rows if _is_carried(body)]
        yield from ((key, body) for body in again.rows)
    else:
        for row in execute():
            if _is_carried(row[1]):
                carried.append(row[1])
            yield row
    own.put(_NAME, token)
    if client.listens():
        if not more:
            held = {where: value for where, value in values().items() if where[0] != NOBODY}
            client.adopt(Adopt(*run, token, end, held, tuple(carried), before or b""))
    else:
        client.start(processes_of(worker.spec.plan))


def caught_up(
    worker: Worker, token: bytes, values: Callable[[], Mapping[Key, bytes]], start: Offset, end: Offset
) -> Cut | None:
    """Repeats a micro-batch in a lost live process's rounds; returns None if there are none or this fails."""
    assert worker.folder is not None, "a run has a checkpoint"
    rounds = read_rounds(rounds_of(worker.folder, worker.spec.owner), token)
    if not rounds:
        return None
    held = {where: value for where, value in values().items() if where[0] != NOBODY}
    carried = tuple(carried_between(worker.folder, start, end))
    try:
        return LiveTasks(worker, Adopt("", b"", token, start, held, carried)).catch_up(rounds, end)
    except GivenUpError as error:
        log.warning("the rounds that were executed once can't be executed again: %s", error)
        worker.tasks.clear()
        return None


def _goes_on(worker: Worker, before: bytes, token: bytes, end: Offset) -> bool:
    """Keeps the rounds after the end of a micro-batch, because the next one must execute the same rounds.

    Spouts know their outcomes. No live process may start until they have been executed again.

    Args:
        worker: of the run.
        before: the state that the micro-batch began with.
        token: the state after it.
        end: of the micro-batch.

    Returns:
        True if there are such rounds.
    """
    assert worker.folder is not None, "a run has a checkpoint"
    folder = rounds_of(worker.folder, worker.spec.owner)
    left = [done for done in read_rounds(folder, before) if not is_before(done.end, end)]
    if left:
        log = RoundLog(folder, worker.wiring.settings(SpoutSettings).durability == "machine")
        log.follow([token])
        for done in left:
            log.append(done)
        log.finish()
        log.close()
    return bool(left)


def _write(cut: Cut, state_of: Callable[[int], StateAccess]) -> None:
    for task, changes in groupby(sorted(cut.changes.items(), key=itemgetter(0)), key=lambda change: change[0][0]):
        state = state_of(task)
        for (_, name, index), value in changes:
            if value is None:
                state.remove(name, index)
            else:
                state.put(name, value, index)


def _is_carried(body: bytes) -> bool:
    return bool(chunk.read_header(body).flags & chunk.CARRIED)
