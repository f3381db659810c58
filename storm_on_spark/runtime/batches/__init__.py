"""Micro-batches: the input of each, and the outcomes of its messages.

Messages of spout hosts and requests of Spark come in; offsets, chunks for the first operator and outcomes for the
spouts go out. `rules/planning.py` decides, without I/O or a clock. Begin with `coordinator.py`, which applies it: a
micro-batch begins at `Coordinator.poll` and ends at `deliver`; spouts hear of it when Spark has committed it.
"""
