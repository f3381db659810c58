"""The rules of micro-batches, pure: events and time in, instructions out."""
