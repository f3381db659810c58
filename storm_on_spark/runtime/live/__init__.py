"""Real time: the tasks of a topology execute tuples as they come, between Spark's micro-batches.

Cuts of the spout log come in as they are written. Outcomes go out at once, and at a barrier the state that changed.
Begin with `tasks.py`.

    messages.py        what a live process and a worker, the coordinator and the spout hosts say to each other
    state.py           the state of tasks in memory, and what changed in it: pure
    gathered.py        outcomes, carried tuples and reports since the last barrier: pure
    tasks.py           the tasks: tuples in, outcomes out; and the cut of their state at a barrier: no sockets, no clock
    copied.py          large attributes at a barrier, pickled by a copy of the process
    local_tasks.py     the tasks of one process, and their state
    live_processes.py  all tasks: the share of the first process, and those of others, which it tells what to execute
    member.py          such another process
    process.py         the first live process: one thread between sockets and tasks
    client.py          what a worker and the coordinator ask of it
    conduct.py         a worker's micro-batch: the cut of the live process, or the log

The spout log is written as always, so all of this may vanish at any moment: the next micro-batch executes then what
was executed here since the last one. See decisions 25 and 30.
"""
