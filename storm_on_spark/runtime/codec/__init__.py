"""Tuples as bytes: chunks and their columns.

Values, roots and edges come in, chunks go out, and the other way round: nothing else knows their format. It executes
nothing and keeps nothing. Begin with `chunk.py`.
"""
