"""Tuples as bytes: chunks and their columns.

Values, roots and edges come in and chunks go out, or the reverse; no other room knows their format. This room executes
nothing and keeps nothing. Begin with `chunk.py`.
"""
