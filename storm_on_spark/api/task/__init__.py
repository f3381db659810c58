"""The objects that a task uses while it runs: its context, its collectors and its hooks."""
