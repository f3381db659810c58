"""Tracking of messages: ids, tuple trees, the acker, pending messages.

Roots, edges and marks come in as arrays; complete, failed and late messages go out. Everything is pure: no I/O, no
clock, and randomness only from a seed. Begin with `acker.py`; `lineage.py` makes its input.
"""
