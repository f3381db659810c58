"""Counts by key in tumbling windows of ten seconds, in bytewax: `python windows.py EVENTS KEYS`.

Prints the seconds that it took: of processor time, and by the clock.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, timezone

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower, count_window
from bytewax.testing import TestingSink, TestingSource, run_main

events, keys = map(int, sys.argv[1:])
start = datetime(2024, 1, 1, tzinfo=timezone.utc)
given = [(str(at % keys), start + timedelta(milliseconds=at)) for at in range(events)]
found: list[tuple[str, tuple[int, int]]] = []
flow = Dataflow("windows")
stream = op.input("events", flow, TestingSource(given, batch_size=1000))
clock = EventClock(ts_getter=lambda event: event[1], wait_for_system_duration=timedelta(seconds=10))
windower = TumblingWindower(length=timedelta(seconds=10), align_to=start)
counted = count_window("count", stream, clock, windower, lambda event: event[0])
op.output("out", counted.down, TestingSink(found))
before, began = time.process_time(), time.monotonic()
run_main(flow)
used, took = time.process_time() - before, time.monotonic() - began
assert sum(count for _, (_, count) in found) == events, sum(count for _, (_, count) in found)
print(used, took)
