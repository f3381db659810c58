"""Fault injection: a topology whose processes, disks or clocks die, stop, fill up or lie.

`make faults` runs it; `docs/reliability.md` has the table that it writes. Every scenario is one load, one kind of
fault, injected at random moments, and the same oracles; `lab/load` has both.

    driver.py     the process that runs it, and that may die
    run.py        one run of it, as the harness sees it: start, watch, restart
    gates.py      a spout that blocks on demand
    scenarios/    the faults, and the table of them
    power.py      what a disk has kept when the machine loses its power
    preload.c     faults that only the C library can inject: I/O errors, a wall clock that jumps
    report.py     the table
"""

from __future__ import annotations
