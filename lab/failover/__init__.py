"""High availability under faults: a cluster whose parts die, stop, or are cut off.

`make failover` runs it; `docs/high-availability.md` has the tables that it writes. Processes are real, and so is the
ensemble of three ZooKeeper servers.

    daemon.py     a Nimbus or a supervisor in its own process, and how it dies
    driver.py     a driver that only writes to its checkpoint, in place of Spark
    mute.py       a driver that never starts
    job.py        a topology for Spark, and its real driver
    writes.py     who writes to a checkpoint
    process.py    a daemon as the harness sees it: start, kill, wait
    cluster.py    a cluster as the harness sees it
    reads.py      a client that keeps asking every Nimbus
    scenarios/    the faults, and the table of them
    history.py    what happened in ZooKeeper, from its transaction logs
    oracles.py    what must be true of that, and of the files
    figures.py    what is measured, and its limits
    report.py     the tables
"""

from __future__ import annotations
