"""Reports of tasks, and their presentation for people."""
