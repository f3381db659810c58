"""Faults, injected and detected: killed processes, broken connections, machines that are cut off, and leftovers."""
