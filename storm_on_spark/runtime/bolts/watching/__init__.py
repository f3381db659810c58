"""Noticing bolts that hang, take long, or hold the interpreter of their worker.

The stacks of a worker's threads and the progress of its tasks come in; files for the driver, log lines and, in the end,
the exit of the worker go out. Begin with `stall.py`; `at_work.py` has what workers write down and the driver reads.
"""
