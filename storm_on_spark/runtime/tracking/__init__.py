"""Tracking of messages: ids, tuple trees, the acker, pending messages.

Roots, edges and marks come in as arrays; which messages are complete, failed or late goes out. All is pure: no I/O, no
clock, no randomness but what a seed gives. Begin with `acker.py`; `lineage.py` makes what it gets.
"""
