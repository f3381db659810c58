"""The message bus in Delta tables."""
