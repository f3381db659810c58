"""Scheduling: which slot each driver gets, who is alive, and which supervisors are drained."""
