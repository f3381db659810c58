"""The wall clock of all processes jumps."""

from __future__ import annotations

import time

from lab.faults.preload import Preload
from lab.faults.run import Run
from lab.suite.scenario import ScenarioError

_HOUR = 3600
_OFFSETS = (_HOUR, 0, -_HOUR, 0)
"""Each is an hour away from the one before, either way."""
_LOOKED_AT_SECS = 10.0
"""Longest time until some process reads the clock."""


def jumps(run: Run, times: int) -> None:
    """Puts the clock an hour forward and back, and an hour back and forward."""
    preload = Preload(run.folder)
    run.environment = preload.environment
    run.start()
    offset = 0
    for number in run.moments(max(times, len(_OFFSETS))):
        before, offset = offset, _OFFSETS[number % len(_OFFSETS)]
        preload.shift_wall_clock(offset)
        at, shifted = time.monotonic_ns(), preload.shifted
        injection = run.injected(f"wall clock jumps by {offset - before:+} s", "", at)
        # In real time messages are acked again before any process has read that clock.
        until = time.monotonic() + _LOOKED_AT_SECS
        while offset and preload.shifted == shifted and time.monotonic() < until:
            time.sleep(0.1)
        read = preload.shifted - shifted
        # In the other direction, the proof is that no process gets a shifted time any more.
        if bool(offset) != (read > 0):
            raise ScenarioError(f"the clock is {offset} s off, and {read} readings of it were shifted since")
        injection.proof = f"{read} readings of the clock were shifted since" if offset else "readings are right again"
