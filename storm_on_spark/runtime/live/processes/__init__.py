"""The live processes of a run: the first one leads, and the others execute their tasks as it directs.

Requests of workers and spout hosts come in over Unix sockets; answers, outcomes and cuts go out.
Begin with `process.py`.

    process.py         the first live process: one thread between sockets and tasks
    live_processes.py  all tasks: those of the first process, and those of other processes, which it directs
    spreading.py       which process executes which task, by what tasks have cost: pure
    member.py          one of these other processes
    told_rounds.py     what spouts are told of rounds, once these are written down
    pulse.py           a thread that answers while the main thread executes a tuple
    early.py           the first live process of a new run, which the driver starts while Spark starts
    watch.py           a thread of the driver that looks at the process also while Spark asks nothing
"""
