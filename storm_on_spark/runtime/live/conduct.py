"""A worker's micro-batch beside a live process: it takes what that has executed, or executes it, and hands over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import Row
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live.messages import Adopt, Cut, Key

NOBODY = -1
"""The task under which the state store has the token of the state."""
_NAME = "live"


class Client(Protocol):
    """What a worker asks of the live process; see `LiveClient`."""

    def fetch(self, token: bytes | None, start: Offset, end: Offset) -> Cut | None:
        """Returns what happened between two offsets, if the process went on from the state with this token."""

    def listens(self) -> bool:
        """Returns whether there is a live process."""

    def adopt(self, adopt: Adopt) -> bool:
        """Hands over the state."""

    def start(self) -> None:
        """Starts the process."""


def micro_batch(
    client: Client,
    run: tuple[str, bytes],
    state_of: Callable[[int], StateAccess],
    values: Callable[[], Mapping[Key, bytes]],
    start: Offset,
    end: Offset,
    execute: Callable[[], Iterable[Row]],
    key: int,
) -> Iterator[Row]:
    """Yields the rows of a micro-batch.

    Args:
        client: to the live process.
        run: start id and specification.
        state_of: gives the state of a task.
        values: returns all that is in the state store.
        start: where the micro-batch begins.
        end: where it ends.
        execute: executes it from the log.
        key: of rows for the sink.
    """
    own = state_of(NOBODY)
    cut = client.fetch(own.get(_NAME), start, end)
    if cut is not None:
        for task, changes in groupby(sorted(cut.changes.items(), key=itemgetter(0)), key=lambda change: change[0][0]):
            state = state_of(task)
            for (_, name, index), value in changes:
                if value is None:
                    state.remove(name, index)
                else:
                    state.put(name, value, index)
        own.put(_NAME, cut.token)
        yield from ((key, body) for body in cut.rows)
        return
    carried: list[bytes] = []
    for row in execute():
        if chunk.read_header(row[1]).flags & chunk.CARRIED:
            carried.append(row[1])
        yield row
    token = os.urandom(16)
    own.put(_NAME, token)
    if client.listens():
        held = {where: value for where, value in values().items() if where[0] != NOBODY}
        client.adopt(Adopt(*run, token, end, held, tuple(carried)))
    else:
        client.start()
