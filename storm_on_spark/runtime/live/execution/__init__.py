"""The live tasks of one process: they execute rounds of tuples and keep state in memory until a barrier.

Tuples come in from spout hosts and other tasks; outcomes, carried tuples and changed state go out.
There are no sockets here. Begin with `tasks.py`.

    tasks.py        the tasks: tuples in, outcomes out; and the cut of their state at a barrier
    small_round.py  a round of a few tuples, without chunks and arrays
    state.py        the state of tasks in memory, and its changes: pure
    gathered.py     outcomes, carried tuples and reports since the last barrier: pure
    rounds.py       the rounds since the last barrier, for replay after a failure
    round_files.py  where these are written: a directory or a store
    copied.py       large attributes at a barrier, pickled by a forked copy of the process
    local_tasks.py  the tasks of one process, and their state
"""
