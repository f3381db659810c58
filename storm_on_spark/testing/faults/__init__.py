"""Faults, injected and noticed: processes that are killed, connections that break, and what is left behind."""
