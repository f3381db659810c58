"""Samples of tuples: Storm's event logging, switched on and off while a topology runs.

Emits, executions and ends of messages come in; lines of samples go out, to the driver, its log and event loggers. What
is not sampled costs one comparison of times per execution. Begin with `sampler.py`; `trees.py` puts a message's samples
together.
"""
