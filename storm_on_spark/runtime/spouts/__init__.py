"""Running spouts: tasks, their log, the process that they live in."""
