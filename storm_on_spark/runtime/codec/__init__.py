"""Tuples as bytes: chunks and their columns."""
