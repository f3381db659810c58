"""Counts by key in tumbling windows of ten seconds, in Pathway: `python windows.py EVENTS KEYS`.

Prints the seconds that it took: of processor time, and by the clock. Windows stay open, and each change of a count
comes out: with `exactly_once_behavior` Pathway takes longer for each event the more there are.
"""

from __future__ import annotations

import sys
import time

import pathway as pw

events, keys = map(int, sys.argv[1:])
found = 0


class Event(pw.Schema):  # type: ignore[misc] # Pathway is not installed where types are checked
    key: int
    time: int


def add(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
    """Sums up what comes out."""
    global found
    found += row["count"] if is_addition else -row["count"]


# A thousand events at once, as bytewax gets them.
given = [(at % keys, at, 2 * (at // 1000), 1) for at in range(events)]
stream = pw.debug.table_from_rows(Event, given, is_stream=True)
windows = stream.windowby(
    stream.time,
    window=pw.temporal.tumbling(duration=10_000),
    instance=stream.key,
)
counted = windows.reduce(key=pw.this["_pw_instance"], count=pw.reducers.count())
pw.io.subscribe(counted, on_change=add)
before, began = time.process_time(), time.monotonic()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
used, took = time.process_time() - before, time.monotonic() - began
assert found == events, found
print(used, took)
