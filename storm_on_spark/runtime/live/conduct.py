"""A worker's micro-batch beside a live process: it takes what that has executed, or executes it, and hands over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.saved import StateAccess
from storm_on_spark.runtime.bolts.stage import Row
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.live.messages import Adopt, Key

NOBODY = -1
"""The task under which the state store has the token of the state."""
_NAME = "live"


def micro_batch(
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
        run: start id and specification.
        state_of: gives the state of a task.
        values: returns all that is in the state store.
        start: where the micro-batch begins.
        end: where it ends.
        execute: executes it from the log.
        key: of rows for the sink.
    """
    client, own = LiveClient(run[0]), state_of(NOBODY)
    cut = client.fetch(own.get(_NAME), start, end)
    if cut is not None:
        for (task, name, index), value in cut.changes.items():
            state = state_of(task)
            if value is None:
                state.remove(name, index)
            else:
                state.put(name, value, index)
        own.put(_NAME, cut.token)
        yield from ((key, body) for body in cut.rows)
        return
    yield from execute()
    token = os.urandom(16)
    own.put(_NAME, token)
    if client.listens():
        held = {where: value for where, value in values().items() if where[0] != NOBODY}
        client.adopt(Adopt(*run, token, end, held))
    else:
        client.start()
