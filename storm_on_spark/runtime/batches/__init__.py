"""Micro-batches: the input of each, and the outcomes of its messages."""
