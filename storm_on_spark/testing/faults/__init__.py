"""Faults, injected and detected: killed processes, broken connections, and leftovers."""
