"""The state of tasks: snapshots of attributes, and key-value state."""
