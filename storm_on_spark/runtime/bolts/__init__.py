"""Executing bolts: tasks, collectors, stages, a worker's instances.

Chunks for the tasks of an operator come in, with access to their state; chunks for later tasks, the ackers and the sink
go out. The same chunks give the same output in every attempt. Begin with `operator.py`; `stage.py` executes one stage,
and `bolt_task.py` one task.
"""
