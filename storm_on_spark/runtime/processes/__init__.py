"""Processes of the operating system: parents, groups, what they print."""
