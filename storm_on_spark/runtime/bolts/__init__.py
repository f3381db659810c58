"""Executing bolts: tasks, collectors, stages, a worker's instances."""
