"""Spout hosts on machines other than the driver's.

Authenticated lines of hosts (`processes.lines`) come in at the driver; messages between the coordinator and these hosts
go through. Begin with `host.py`.

    host.py     a remote spout host as the coordinator sees it
    process.py  the host's own process, which connects to the driver
    serving.py  the work of that process once it is connected
    keeper.py   runs in a Spark task and keeps that process running, or a live process
    kept.py     how a process that it has started begins

A host's process connects to the driver, proves that it knows the secret of the run, and says which host it is. From
then on it is a spout host like any other. When the connection ends for any reason, the process ends too; the keeper
starts another, which continues from the log with its own epoch. A network failure, a frozen host and the loss of a
machine are therefore the same case, and nothing that an earlier process still writes is ever read.
"""
