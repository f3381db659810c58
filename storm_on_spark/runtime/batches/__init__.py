"""Micro-batches: the input of each, and the outcomes of its messages.

What spout hosts say and what Spark asks comes in; offsets, chunks for the first operator and outcomes for the spouts go
out. `rules/planning.py` decides, without I/O or a clock. Begin with `coordinator.py`, which does what the rules say.
"""
