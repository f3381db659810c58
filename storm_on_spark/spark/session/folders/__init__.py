"""Folders of this machine's user, and temporary folders that are removed once their owner has ended."""
