"""Live processes on several machines: the first one is beside the driver, and its callers may be anywhere.

Calls of other machines come in at the first live process; its requests go out to further live processes, and a worker's
go in to it. Begin with `reception.py`.

    reception.py  accepts calls in the first live process, and relays what workers ask
    member.py     a further live process as the first one sees it
    process.py    that further process, which calls the first one
    asking.py     a worker's request from another machine
    leader.py     a thread of the driver that keeps the first live process running

The driver has the listening socket and hands it to each first process that it starts, so the others call at the same
place again when that is lost. A broken connection is a lost process: all tasks are given up, and the next micro-batch
executes the log. No protocol has to resume in the middle.
"""
