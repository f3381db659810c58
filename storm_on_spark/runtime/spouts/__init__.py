"""Running spouts: tasks, their log and the process that hosts them.

What a spout emits, and the coordinator's messages, come in; records of the spout log, and messages to the coordinator,
go out. What is not in the log never happened. Begin with `spout_task.py`; `task_loop.py` decides when it is called, and
`log/` is the log.
"""
