"""Running spouts: tasks, their log and the process that hosts them.

Emitted tuples and the coordinator's messages come in; records of the spout log and messages to the coordinator go out.
Tuples that are not in the log were never emitted. Begin with `spout_task.py`. `task_loop.py` decides when to
call it, and `log/` is the log.
"""
