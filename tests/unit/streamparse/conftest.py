"""What is a program for the tests, not a test."""

from __future__ import annotations

# It imports a stand-in, which only the loader makes importable.
collect_ignore = ["words_topology.py"]
