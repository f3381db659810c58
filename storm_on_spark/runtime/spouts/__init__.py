"""Running spouts: tasks, their log and the process that hosts them."""
