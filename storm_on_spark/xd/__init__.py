"""Streams by description: text becomes definitions of streams, and these become topologies."""
