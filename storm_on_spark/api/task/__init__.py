"""What a task has while it runs: its context, the collectors by which it emits, its hooks."""
