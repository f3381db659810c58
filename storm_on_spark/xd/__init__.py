"""Streams by description: text becomes definitions of streams."""
