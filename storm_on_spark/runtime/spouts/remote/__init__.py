"""Spout hosts on other machines than the driver's.

    line.py      an authenticated connection: pure protocol over a socket
    listener.py  the driver's ear: who calls, and for which host
    host.py      a remote spout host as the coordinator sees it
    process.py   the host's own process: it calls the driver
    serving.py   what it does from there on
    keeper.py    what runs in a Spark task and keeps that process running

A host's process connects to the driver, proves that it knows the secret of the run, and says which host it is. From
there on it is a spout host as any other. When the connection ends, for whatever reason, the process ends too; the
keeper starts another, which goes on from the log with an epoch of its own. So a break of the network, a host that
froze and the loss of a machine are one case, and what an earlier process still writes is never read.
"""
