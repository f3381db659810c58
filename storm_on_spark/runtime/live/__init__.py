"""Real time: the tasks of a topology execute tuples as they arrive, between Spark's micro-batches.

Cuts of the spout log come in as they are written. Outcomes go out immediately, and changed state at a barrier.
Begin with `tasks.py`.

    messages.py        the messages between a live process and a worker, the coordinator and the spout hosts
    state.py           the state of tasks in memory, and its changes: pure
    gathered.py        outcomes, carried tuples and reports since the last barrier: pure
    tasks.py           the tasks: tuples in, outcomes out; and the cut of their state at a barrier: no sockets, no clock
    small_round.py     a round of a few tuples, without chunks and arrays
    copied.py          large attributes at a barrier, pickled by a copy of the process
    local_tasks.py     the tasks of one process, and their state
    live_processes.py  all tasks: those of the first process, and those of other processes, which it directs
    member.py          one of these other processes
    process.py         the first live process: one thread between sockets and tasks
    client.py          requests of a worker and the coordinator to it
    conduct.py         a worker's micro-batch: the cut of the live process, or the log

The spout log is written as always, so live processes may vanish at any moment: the next micro-batch then executes again
what they executed since the last one. See decisions 25, 29 and 45.
"""
