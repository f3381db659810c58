"""Real time: the tasks of a topology execute tuples as they arrive, between Spark's micro-batches.

Cuts of the spout log come in as they are written. Outcomes go out immediately, and changed state at a barrier.
Begin with `execution/tasks.py`. Three modules here are what the rest of the engine uses:

    messages.py  the messages between a live process and a worker, the coordinator and the spout hosts
    client.py    requests of a worker and the coordinator to a live process
    conduct.py   a worker's micro-batch: the cut of the live process, or the log
    execution/   the tasks of one process, and their state
    processes/   the processes that hold them: the first one, and those that it directs

The spout log is written as always, so live processes may vanish at any moment: the next micro-batch then executes again
what they executed since the last one. See decisions 25, 29 and 45.
"""
